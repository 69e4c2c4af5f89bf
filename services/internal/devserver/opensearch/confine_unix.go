//go:build unix

package opensearch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is the ID of a user and a group without rights. They need no entry in /etc/passwd or /etc/group.
const nobody = 65534

// traverseGroup and traverseAll are the permissions to traverse a directory, for its group and for all users.
const traverseGroup, traverseAll = 0o010, 0o001

// dropPrivileges makes the child run as an unprivileged user if this process runs as root.
func dropPrivileges(child *exec.Cmd, cfg Config) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, dir := range []string{cfg.Home, cfg.Dir} {
		if err := checkServerUserCanTraverse(dir); err != nil {
			return err
		}
	}
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return chownToServerUser(cfg.Dir)
}

// checkServerUserCanTraverse returns an error if the unprivileged user cannot traverse the directories above dir.
func checkServerUserCanTraverse(dir string) error {
	for above := filepath.Dir(dir); above != filepath.Dir(above); above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return fmt.Errorf("looking for the way to %s: %w", dir, err)
		}
		owner, known := info.Sys().(*syscall.Stat_t)
		byGroup := known && owner.Gid == nobody && info.Mode().Perm()&traverseGroup != 0
		if !byGroup && info.Mode().Perm()&traverseAll == 0 {
			return fmt.Errorf("OpenSearch does not run as root, and user %d cannot pass through %s to %s: "+
				"run `chmod o+x %s`, use another place, or run as another user", nobody, above, dir, above)
		}
	}
	return nil
}

// AllowServerUserToTraverse allows the unprivileged user to traverse dir, if this process runs as root. Other users get
// no access.
func AllowServerUserToTraverse(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&traverseAll == 0 {
		err = errors.Join(os.Chown(dir, -1, nobody), os.Chmod(dir, info.Mode().Perm()|traverseGroup))
	}
	if err != nil {
		return fmt.Errorf("giving user %d access to %s: %w", nobody, dir, err)
	}
	return nil
}

// chownToServerUser makes the unprivileged user the owner of the directories that the server reads or writes. Root
// keeps the parent directory, and links that the unprivileged user creates are not followed.
func chownToServerUser(dir string) error {
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // Its parts are their owners' alone.
		return fmt.Errorf("changing the owner of %s to user %d: %w", dir, nobody, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("changing the owner of %s to user %d: %w", dir, nobody, err)
	}
	defer root.Close()
	for _, part := range []string{configuration, "data", "logs", "tmp"} {
		err := fs.WalkDir(root.FS(), part, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return root.Lchown(path, nobody, nobody)
		})
		if err != nil {
			return fmt.Errorf("changing the owner of %s to user %d: %w", filepath.Join(dir, part), nobody, err)
		}
	}
	return nil
}
