// Package authorizer serves the authorization webhook of the API server. It decodes reviews, has their questions
// decided, and encodes the answers.
//
// A failure is sent as an HTTP error, never as a review with an answer. The API server caches answers, and repeats a
// request only after an error.
package authorizer
