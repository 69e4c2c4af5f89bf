// Package format writes policy files in one standard form. It keeps the order of their items and all comments.
package format
