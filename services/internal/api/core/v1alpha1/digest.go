package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// digest is short, and another one for other texts.
func digest(texts ...string) string {
	var all []byte
	for _, text := range texts {
		all = append(strconv.AppendQuote(all, text), '\n')
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}
