// Package lint reports parts of a valid policy that are probably not intended, or may cause problems later. All its
// findings are warnings.
package lint
