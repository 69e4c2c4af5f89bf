package options

import (
	"fmt"
	"regexp"
	"strings"
)

// AdminName is the user of the kubeconfig that every data directory has.
const AdminName = "admin"

// User is somebody who gets a client certificate.
type User struct {
	Name   string
	Groups []string
}

// maxUsers and maxGroups bound what one start has to sign.
const (
	maxUsers  = 1000
	maxGroups = 100
)

// userName keeps names fit for a file name and for an X.509 common name.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

func parseUsers(values []string) ([]User, error) {
	if len(values) > maxUsers {
		return nil, fmt.Errorf("%d --user flags: at most %d are allowed", len(values), maxUsers)
	}
	users := make([]User, 0, len(values))
	seen := map[string]bool{AdminName: true}
	for _, value := range values {
		user, err := parseUser(value)
		if err != nil {
			return nil, err
		}
		if seen[user.Name] {
			return nil, fmt.Errorf("--user %q: the name is taken (%q always exists), give each user once", value, AdminName)
		}
		seen[user.Name] = true
		users = append(users, user)
	}
	return users, nil
}

// parseUser splits at the first colon only: group names such as
// system:masters hold colons themselves.
func parseUser(value string) (User, error) {
	name, list, hasGroups := strings.Cut(value, ":")
	if !userName.MatchString(name) {
		return User{}, fmt.Errorf("--user %q: the name must be 1 to 64 letters, digits or ._@- and begin with a letter or digit", value)
	}
	user := User{Name: name}
	if !hasGroups {
		return user, nil
	}
	user.Groups = strings.Split(list, ",")
	if len(user.Groups) > maxGroups {
		return User{}, fmt.Errorf("--user %s: %d groups, at most %d are allowed", name, len(user.Groups), maxGroups)
	}
	for _, group := range user.Groups {
		if group == "" || len(group) > 64 {
			return User{}, fmt.Errorf("--user %q: a group name must have 1 to 64 characters; write NAME:GROUP,GROUP", value)
		}
	}
	return user, nil
}
