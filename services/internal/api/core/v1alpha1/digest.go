package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// shortDigest returns a short hash of texts. Different lists of texts give different hashes.
func shortDigest(texts ...string) string {
	var all []byte
	for _, text := range texts {
		all = append(strconv.AppendQuote(all, text), '\n')
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}
