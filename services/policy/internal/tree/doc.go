// Package tree reads one YAML document into nodes that know where they stand.
//
// What people and generators write almost always is a small part of YAML: block mappings
// and sequences of plain words. A scanner of its own reads that part, an order of magnitude
// faster than a YAML library and in a fraction of its memory. Whatever it does not know for
// certain it declines, and the library reads the document instead: both give the same nodes,
// which a fuzz test holds them to.
package tree
