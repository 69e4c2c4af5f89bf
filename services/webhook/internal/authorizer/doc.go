// Package authorizer is the server that the API server asks whether somebody may do something: it reads reviews, puts
// questions, and answers. Whatever goes wrong on the way is no answer: the API server keeps every answer, and asks again
// only where there was none.
package authorizer
