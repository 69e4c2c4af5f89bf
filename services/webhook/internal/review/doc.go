// Package review is what the API server asks an authorizer and how it is answered, SubjectAccessReview, and the question
// that package decide answers in between. It knows no server.
package review
