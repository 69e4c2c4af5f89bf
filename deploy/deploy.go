// Package deploy holds the manifests of this folder, for programs that must do without it: what a
// cluster needs before services run, what it may have beside, and examples.
package deploy

import "embed"

// Files are the folders admission, authorization, base, components, crd, crd-legacy, overlays and samples.
//
//go:embed admission authorization base components crd crd-legacy overlays samples
var Files embed.FS
