// Package format writes the files of policies the one way, as their authors arranged them and with
// their comments.
package format
