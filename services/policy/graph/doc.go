// Package graph draws a policy: its types, the relations between them, and the actions that flow along the relations.
//
// An arrow points along a relation. Its actions flow the other way: a subject with the action on a resource at the head
// has the action on the one at the tail. Types that only hold roles and subjects are left out unless a document
// declares them.
//
// If a graph has more than thirty nodes, actions are counted instead of listed, and unions get nodes of their own. A
// [Filter] shows less: the surroundings of one type, or one node for each service. The title of each box in an SVG
// names the filter that shows more of it.
//
// A [Graph] can also be constructed by hand, reduced and drawn.
//
// The same policy gives the same bytes, whatever the order of its documents.
package graph
