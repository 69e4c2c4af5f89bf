// Package deploy holds the manifests of this folder, for programs that must do without it: what a
// cluster needs before services run, and examples.
package deploy

import "embed"

// Files are the folders admission, authorization, base, components, crd, overlays and samples.
//
//go:embed admission authorization base components crd overlays samples
var Files embed.FS
