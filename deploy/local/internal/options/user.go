package options

import (
	"fmt"
	"regexp"
	"strings"
)

// AdminName is the user of the kubeconfig that every data directory has.
const AdminName = "admin"

// ClientUser is somebody who gets a client certificate, in FILE.kubeconfig.
type ClientUser struct {
	Name   string
	Groups []string
	File   string
}

// maxUsers and maxGroups bound what one start has to sign.
const (
	maxUsers  = 1000
	maxGroups = 100
)

// userName keeps names fit for a file name and for an X.509 common name.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

const (
	// serviceAccount begins the name of a service account's user, and maxName ends any
	// common name.
	serviceAccount = "system:serviceaccount:"
	maxName        = 64
)

// label is what namespaces and service accounts are called.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func parseUsers(values, nodes []string) ([]ClientUser, error) {
	if len(values)+len(nodes) > maxUsers {
		return nil, fmt.Errorf("%d --user and --node flags: at most %d are allowed", len(values)+len(nodes), maxUsers)
	}
	users := make([]ClientUser, 0, len(values)+len(nodes))
	for _, value := range values {
		user, err := parseUser(value)
		if err != nil {
			return nil, err
		}
		users = append(users, user)
	}
	for _, name := range nodes {
		user, err := parseNodeUser(name)
		if err != nil {
			return nil, err
		}
		users = append(users, user)
	}
	if len(nodes) > 0 { // They run what kube-local leaves to others, too.
		for _, name := range [...]string{"kube-scheduler", "kube-controller-manager", "kube-proxy"} {
			users = append(users, ClientUser{Name: "system:" + name, File: name})
		}
	}
	seen := map[string]bool{AdminName: true}
	for _, user := range users {
		if seen[user.File] {
			return nil, fmt.Errorf("%s.kubeconfig would be of two: the name is taken (%q always exists), give each user and node once", user.File, AdminName)
		}
		seen[user.File] = true
	}
	return users, nil
}

// parseNodeUser is the user that a kubelet is.
func parseNodeUser(name string) (ClientUser, error) {
	user := ClientUser{Name: "system:node:" + name, Groups: []string{"system:nodes"}, File: name}
	if !label.MatchString(name) || len(user.Name) > maxName {
		return ClientUser{}, fmt.Errorf("--node %q: the name must be small letters, digits and hyphens, at most %d of them", name, maxName-len("system:node:"))
	}
	return user, nil
}

// parseUser splits at the first colon only: group names such as
// system:masters hold colons themselves.
func parseUser(value string) (ClientUser, error) {
	if account, ok := strings.CutPrefix(value, serviceAccount); ok {
		return parseServiceAccount(account)
	}
	name, list, hasGroups := strings.Cut(value, ":")
	if !userName.MatchString(name) {
		return ClientUser{}, fmt.Errorf("--user %q: the name must be 1 to 64 letters, digits or ._@- and begin with a letter or digit", value)
	}
	user := ClientUser{Name: name, File: name}
	if !hasGroups {
		return user, nil
	}
	user.Groups = strings.Split(list, ",")
	if len(user.Groups) > maxGroups {
		return ClientUser{}, fmt.Errorf("--user %s: %d groups, at most %d are allowed", name, len(user.Groups), maxGroups)
	}
	for _, group := range user.Groups {
		if group == "" || len(group) > 64 {
			return ClientUser{}, fmt.Errorf("--user %q: a group name must have 1 to 64 characters; write NAME:GROUP,GROUP", value)
		}
	}
	return user, nil
}

// parseServiceAccount reads NAMESPACE:NAME. Its groups are those that a token of it would give.
func parseServiceAccount(value string) (ClientUser, error) {
	namespace, name, _ := strings.Cut(value, ":")
	user := serviceAccount + value
	if !label.MatchString(namespace) || !label.MatchString(name) || len(user) > maxName {
		return ClientUser{}, fmt.Errorf("--user %s%s: write %sNAMESPACE:NAME, in small letters, digits and hyphens, of at most %d characters in all",
			serviceAccount, value, serviceAccount, maxName)
	}
	const all = "system:serviceaccounts"
	return ClientUser{Name: user, Groups: []string{all, all + ":" + namespace}, File: name}, nil
}
