// Package review converts a SubjectAccessReview of the API server to a question of package decide, and the result to an
// answer. It contains no server.
package review
