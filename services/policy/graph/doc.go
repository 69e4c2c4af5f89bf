// Package graph draws a policy: its types, the relations between them, and the actions that flow
// along the relations.
//
// An arrow leads along a relation. What stands beside it flows the other way: who may take the
// action on a resource at its head may take it on the one at its tail. Types that only hold roles
// and subjects are left out unless a document declares them.
//
// Of more than thirty types, actions are counted in place of listed, and unions have nodes of their own. A [Filter]
// shows less: what is near to one type, or a node for each service. Each box of an SVG says in its title by which.
//
// A [Graph] of anything else can be made by hand, reduced and drawn.
//
// The same policy gives the same bytes, in whatever order its documents were.
package graph
