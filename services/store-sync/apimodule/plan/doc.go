// Package plan makes modules for APIs: from the names and the scope of a resource, the DSL by which OpenFGA can be asked
// who may create, list, get or change its objects.
//
// The names in these modules are a contract with authorizers, which build the same from the request that they judge: of
// the resource widgets in the group example.com, `create_example_com_widgets` on the account or namespace, and `update` on
// the type `example_com_widget`. OpenFGA bounds names, so what is too long is cut, at the front of the group; see [Token].
// What has no valid names all the same is an error about that one resource.
//
// [Make] plans which AuthorizationModels carry such modules for one Store: those of labelled CustomResourceDefinitions,
// and of the kcp APIBindings of its organization.
//
// The package is pure: no I/O, no clock, no log.
package plan
