// Package review converts a SubjectAccessReview of the API server to a question of package authz, and the result to an
// answer. It contains no server.
package review
