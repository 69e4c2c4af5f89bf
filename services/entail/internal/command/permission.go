package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

// Parts of the help: names of resources, and names of subjects.
const (
	resourceHelp = `A RESOURCE is the plural that a ProtectedResource registers, with the name of an object: projects/web. Add the API
group if several groups have the plural: projects.resourcemanager.miloapis.com/web.`
	whoHelp = `WHO is the name of a User, serviceaccount:UID, or group:NAME for a group of the authenticator. The default is
the owner of the token. To ask about others you need the right to create subjectaccessreviews.`
)

// accessFlags holds the flags of a question about a resource.
type accessFlags struct {
	namespace, subresource, project string
	groups                          []string
}

func (w *accessFlags) bindFlags(cmd *cobra.Command, around IOStreams) {
	bindNamespaceFlag(cmd, around.Getenv, &w.namespace, "namespace of the object, if its kind is namespaced; without it only grants for all namespaces count")
	w.namespace = "" // Most protected kinds are cluster-scoped: require -n.
	cmd.Flags().Lookup("namespace").DefValue = ""
	cmd.Flags().StringVar(&w.subresource, "subresource", "", "subresource, such as status")
	cmd.Flags().StringVar(&w.project, "project", "", "ask as the endpoint of this Project would")
}

func (w *accessFlags) bindGroupFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&w.groups, "group", nil, "`groups` that the authenticator gives; repeatable")
}

func newCanICommand(around IOStreams) *cobra.Command {
	var w accessFlags
	cmd := &cobra.Command{
		Use:   "can-i [WHO] VERB RESOURCE[/NAME]",
		Short: "Check whether the objects of IAM give a permission",
		Long: "can-i asks whether the objects of IAM give a permission. The exit code is 0 for yes and 1 for no. Kubernetes RBAC is\n" +
			"not asked: it may allow more.\n\n" + resourceHelp + "\n" + whoHelp,
		Example: "  entail can-i alice get projects/web\n  entail can-i alice list projects --group oidc:staff\n  entail can-i get projects/web",
		Args:    cobra.RangeArgs(2, 3),
	}
	q := newAccessCall(cmd, around)
	w.bindFlags(cmd, around)
	w.bindGroupFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject, resource, err := w.parseAccessArguments(cmd.Context(), q, args)
		if err != nil {
			return err
		}
		answer, err := callAndPrint(cmd, q, accessv1connect.AccessServiceClient.CheckAccess,
			&accessv1.CheckAccessRequest{Subject: subject, Verb: args[len(args)-2], Resource: resource}, report.Printer.WriteAccessAnswer)
		if err == nil && !answer.GetAllowed() {
			printNamespaceHint(cmd, q.format, args, answer)
			return exit.ErrTold
		}
		return err
	}
	return cmd
}

func newExplainAccessCommand(around IOStreams) *cobra.Command {
	var w accessFlags
	cmd := &cobra.Command{
		Use:   "access [WHO] VERB RESOURCE[/NAME]",
		Short: "Explain why a subject has a permission, or what is missing",
		Long: "access prints each way that gives a permission, or what is missing. Kubernetes RBAC is not asked: it may allow more.\n\n" +
			resourceHelp + "\n" + whoHelp,
		Example: "  entail explain access alice get projects/web",
		Args:    cobra.RangeArgs(2, 3),
	}
	q := newAccessCall(cmd, around)
	w.bindFlags(cmd, around)
	w.bindGroupFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject, resource, err := w.parseAccessArguments(cmd.Context(), q, args)
		if err != nil {
			return err
		}
		answer, err := callAndPrint(cmd, q, accessv1connect.AccessServiceClient.ExplainAccess,
			&accessv1.ExplainAccessRequest{Subject: subject, Verb: args[len(args)-2], Resource: resource}, report.Printer.WriteAccessExplanation)
		if err == nil && !answer.GetAllowed() {
			printNamespaceHint(cmd, q.format, args, answer)
		}
		return err
	}
	return cmd
}

func newWhoCanCommand(around IOStreams) *cobra.Command {
	var w accessFlags
	cmd := &cobra.Command{
		Use:   "who-can VERB RESOURCE[/NAME]",
		Short: "List the subjects that have a permission",
		Long: "who-can lists the users, accounts and groups to which the objects of IAM give a permission, and the members of the groups.\n" +
			"Kubernetes RBAC is not asked: it may allow more.\n\n" + resourceHelp,
		Example: "  entail who-can get projects/web",
		Args:    cobra.ExactArgs(2),
	}
	q := newAccessCall(cmd, around)
	w.bindFlags(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		resource, err := w.parseResource(cmd.Context(), client, args[1])
		if err != nil {
			return err
		}
		all := &accessv1.WhoCanResponse{}
		err = readEveryPage(func(token string) (next string, have int, err error) {
			page, err := client.WhoCan(cmd.Context(), &accessv1.WhoCanRequest{Verb: args[0], Resource: resource, PageSize: maxPage, PageToken: token})
			all.Holders = append(all.GetHolders(), page.GetHolders()...)
			all.Truncated, all.Permission, all.Revision = page.GetTruncated(), page.GetPermission(), page.GetRevision()
			all.NoNamespace = page.GetNoNamespace()
			return page.GetNextPageToken(), len(all.GetHolders()), err
		})
		if err != nil {
			return err
		}
		if err := q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteAccessHolders(all) }); err != nil {
			return err
		}
		printNamespaceHint(cmd, q.format, args, all)
		return nil
	}
	return cmd
}

func newWhatCanCommand(around IOStreams) *cobra.Command {
	var w accessFlags
	cmd := &cobra.Command{
		Use:     "what-can [WHO]",
		Short:   "List the roles of a subject in IAM, with their permissions",
		Long:    "List the roles of a subject in IAM, with their permissions. A role also holds on everything below its object.\n\n" + whoHelp,
		Example: "  entail what-can alice\n  entail what-can alice --group oidc:staff -o json",
		Args:    cobra.MaximumNArgs(1),
	}
	q := newAccessCall(cmd, around)
	w.bindGroupFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject, err := w.parseSubject(args)
		if err != nil {
			return err
		}
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		all := &accessv1.WhatCanResponse{}
		err = readEveryPage(func(token string) (next string, have int, err error) {
			page, err := client.WhatCan(cmd.Context(), &accessv1.WhatCanRequest{Subject: subject, PageSize: maxPage, PageToken: token})
			all.Rights = append(all.GetRights(), page.GetRights()...)
			all.Revision = page.GetRevision()
			return page.GetNextPageToken(), len(all.GetRights()), err
		})
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), all, func(p report.Printer) { p.WriteSubjectRights(all) })
	}
	return cmd
}

// printNamespaceHint prints a hint for people if a namespace may change the answer. Output for programs has a field for it.
func printNamespaceHint(cmd *cobra.Command, format report.Format, args []string, answer interface{ GetNoNamespace() bool }) {
	if answer.GetNoNamespace() && format == report.Table {
		cmd.PrintErrf("%s: this kind is namespaced; without -n only grants for all namespaces count\n", args[len(args)-1])
	}
}

// parseAccessArguments reads [WHO] VERB RESOURCE[/NAME].
func (w *accessFlags) parseAccessArguments(
	ctx context.Context, q *apiCall[accessv1connect.AccessServiceClient], args []string,
) (*accessv1.Subject, *accessv1.Resource, error) {
	subject, err := w.parseSubject(args[:len(args)-2])
	if err != nil {
		return nil, nil, err
	}
	client, err := newAPIClient(&q.connection, q.client)
	if err != nil {
		return nil, nil, err
	}
	resource, err := w.parseResource(ctx, client, args[len(args)-1])
	return subject, resource, err
}

// parseSubject reads NAME, user:NAME, serviceaccount:UID or group:NAME. Without an argument the subject is the caller.
func (w *accessFlags) parseSubject(args []string) (*accessv1.Subject, error) {
	if len(args) == 0 && len(w.groups) == 0 {
		return &accessv1.Subject{}, nil
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("%w: --group needs a user: name WHO, or give group:NAME to ask about all members of the group", exit.ErrUsage)
	}
	argument := args[0]
	kind, name, ok := strings.Cut(argument, ":")
	if name == "" && ok || argument == "" {
		return nil, fmt.Errorf("%w: %q names no subject", exit.ErrUsage, argument)
	}
	switch {
	case kind == "user" && ok:
		return &accessv1.Subject{User: name, Groups: w.groups}, nil
	case kind == "serviceaccount" && ok:
		return &accessv1.Subject{ServiceAccountUid: name, Groups: w.groups}, nil
	case kind == "group" && ok:
		return &accessv1.Subject{Groups: append(slices.Clone(w.groups), name)}, nil
	}
	return &accessv1.Subject{User: argument, Groups: w.groups}, nil
}

// parseResource reads RESOURCE[.GROUP][/NAME]. Without a group, exactly one ProtectedResource must register the name.
func (w *accessFlags) parseResource(ctx context.Context, client accessv1connect.AccessServiceClient, argument string) (*accessv1.Resource, error) {
	plural, name, named := strings.Cut(argument, "/")
	plural, group, grouped := strings.Cut(plural, ".")
	if plural == "" || named && name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%w: %q is neither RESOURCE nor RESOURCE/NAME", exit.ErrUsage, argument)
	}
	if !grouped {
		var err error
		if group, err = groupOfPlural(ctx, client, plural); err != nil {
			return nil, err
		}
	}
	return &accessv1.Resource{
		ApiGroup: group, Resource: plural, Subresource: w.subresource, Namespace: w.namespace, Name: name, Project: w.project,
	}, nil
}

// groupOfPlural returns the API group of a protected resource. It returns an error if no group or several groups have it.
func groupOfPlural(ctx context.Context, client accessv1connect.AccessServiceClient, plural string) (string, error) {
	all, err := listProtectedResources(ctx, client)
	if answer := new(connect.Error); errors.As(err, &answer) && answer.Code() == connect.CodePermissionDenied {
		return "", connect.NewError(answer.Code(), fmt.Errorf("%s; name the API group: %s.GROUP", answer.Message(), plural))
	}
	if err != nil {
		return "", err
	}
	var groups, plurals []string
	for _, r := range all.GetResources() {
		group, _, _ := strings.Cut(r.GetType(), "/")
		plurals = append(plurals, r.GetPlural()+"."+group)
		if r.GetPlural() == plural {
			groups = append(groups, group)
		}
	}
	switch len(groups) {
	case 0:
		return "", fmt.Errorf("%w: no ProtectedResource registers %q; there are: %s", exit.ErrUsage, plural, strings.Join(plurals, ", "))
	case 1:
		return groups[0], nil
	}
	return "", fmt.Errorf("%w: several API groups have %q, name one: %s", exit.ErrUsage, plural, plural+"."+strings.Join(groups, ", "+plural+"."))
}

// listProtectedResources reads all pages.
func listProtectedResources(ctx context.Context, client accessv1connect.AccessServiceClient) (*accessv1.ListProtectedResourcesResponse, error) {
	all := &accessv1.ListProtectedResourcesResponse{}
	err := readEveryPage(func(token string) (next string, have int, err error) {
		page, err := client.ListProtectedResources(ctx, &accessv1.ListProtectedResourcesRequest{PageSize: maxPage, PageToken: token})
		all.Resources = append(all.GetResources(), page.GetResources()...)
		all.Revision = page.GetRevision()
		return page.GetNextPageToken(), len(all.GetResources()), err
	})
	return all, err
}
