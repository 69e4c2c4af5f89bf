// Package plan makes modules for APIs. From the names and the scope of a resource it writes DSL. By that DSL OpenFGA
// answers whether a user may create, list, get or change the resource's objects.
//
// The names in these modules are a contract with authorizers, which build the same names from the request that they
// judge. For the resource widgets in the group example.com the names are `create_example_com_widgets` on the account or
// namespace, and `update` on the type `example_com_widget`. OpenFGA limits the length of names, so a group that is too
// long loses its front; see [GroupToken]. If a resource has no valid names even then, the error concerns only that resource.
//
// [DecideModels] plans the AuthorizationModels that carry such modules for one Store. They follow from labelled
// CustomResourceDefinitions and from the kcp APIBindings of the Store's organization.
//
// The package is pure: no I/O, no clock, no log.
package plan
