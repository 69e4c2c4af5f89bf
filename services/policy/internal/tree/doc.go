// Package tree reads one YAML document into nodes with positions.
//
// Most policies use a small part of YAML: block mappings and sequences of plain words. A scanner reads that part, ten
// times as fast as a YAML library and with far less memory. It declines every document that it cannot read for certain,
// and the library reads that instead. Both return the same nodes; a fuzz test checks that.
package tree
