package model_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func ExampleMerge() {
	core := model.Module{DSL: `module core

type user

type account
  relations
    define owner: [user]
`}
	good := model.Module{
		Origin: model.ModuleOrigin{Kind: model.AuthorizationModel, Name: "billing"},
		DSL: `module billing

extend type account
  relations
    define pay: owner
`,
	}
	bad := model.Module{
		Origin: model.ModuleOrigin{Kind: model.AuthorizationModel, Name: "shipping"},
		DSL: `module shipping

extend type acount
  relations
    define ship: owner
`,
	}
	result, err := model.Merge(core, []model.Module{bad, good}, model.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range result.Reports {
		fmt.Printf("%s is %s\n", r.Origin, r.State)
		if r.Message != "" {
			fmt.Println("\t" + r.Message)
		}
	}
	text, err := model.RenderDSL(result.Model)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(text)
	// Output:
	// core is Merged
	// authorizationmodel/billing is Merged
	// authorizationmodel/shipping is Rejected
	// 	line 3:13: the module extends type acount, which no module defines: define it, or correct the name
	// model
	//   schema 1.2
	//
	// type account
	//   relations
	//     define owner: [user]
	//     define pay: owner
	//
	// type user
}
