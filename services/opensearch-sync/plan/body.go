package plan

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// DeclaredBody returns the content that an object declares, or nil for a kind that has no entity of its own.
func DeclaredBody(o opensearchv1.DeclaredObject) Body {
	switch o := o.(type) {
	case *opensearchv1.OpensearchUser:
		attributes := map[string]any{}
		for name, value := range o.Spec.Attributes {
			if !isReservedAttribute(name) {
				attributes[name] = value
			}
		}
		return Body{
			fieldBackendRoles: toAnySlice(o.Spec.BackendRoles), fieldRoles: toAnySlice(o.Spec.OpendistroSecurityRoles),
			"attributes": attributes, fieldDescription: textOrNil(o.Spec.Description),
		}
	case *opensearchv1.OpensearchRole:
		return Body{
			"cluster_permissions": toAnySlice(o.Spec.ClusterPermissions), "index_permissions": indexPermissions(o.Spec.IndexPermissions),
			"tenant_permissions": tenantPermissions(o.Spec.TenantPermissions), fieldDescription: textOrNil(o.Spec.Description),
		}
	case *opensearchv1.OpensearchTenant:
		return Body{fieldDescription: o.Spec.Description}
	case *opensearchv1.OpensearchActionGroup:
		return Body{
			"allowed_actions": toAnySlice(o.Spec.AllowedActions), "type": textOrNil(o.Spec.Type), fieldDescription: textOrNil(o.Spec.Description),
		}
	default:
		return nil
	}
}

// isReservedAttribute reports whether a user attribute records ownership or the password tag. Objects cannot set such attributes.
func isReservedAttribute(name string) bool {
	return name == opensearchv1.UIDAttribute || name == opensearchv1.PasswordAttribute || name == opensearchv1.VersionAttribute
}

func indexPermissions(permissions []opensearchv1.IndexPermission) []any {
	all := []any{}
	for _, p := range permissions {
		all = append(all, map[string]any{
			"index_patterns": toAnySlice(p.IndexPatterns), "dls": p.DLS, "fls": toAnySlice(p.FLS),
			"masked_fields": toAnySlice(p.MaskedFields), "allowed_actions": toAnySlice(p.AllowedActions),
		})
	}
	return all
}

func tenantPermissions(permissions []opensearchv1.TenantPermission) []any {
	all := []any{}
	for _, p := range permissions {
		all = append(all, map[string]any{"tenant_patterns": toAnySlice(p.TenantPatterns), "allowed_actions": toAnySlice(p.AllowedActions)})
	}
	return all
}

func toAnySlice(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = t
	}
	return all
}

// textOrNil returns text, or nil for an empty text, so that the field is left out.
func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// PasswordTag returns a keyed hash (HMAC) of an object's password. The key is available only to clients that may write
// passwords anyway.
func PasswordTag(key []byte, uid, password string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(uid + "\x00" + password))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// ApprovalDigest returns the value of the annotation that lets a user receive, or a binding give, protected roles. It covers
// this object, the name and password reference of a user, and these lists only.
func ApprovalDigest(o opensearchv1.DeclaredObject) string {
	parts := [][]string{{string(o.GetUID()), o.OpenSearchName()}}
	switch o := o.(type) {
	case *opensearchv1.OpensearchUser:
		parts = append(parts, []string{o.Spec.PasswordFrom.Name, o.Spec.PasswordFrom.Key}, sortUnique(o.Spec.BackendRoles),
			sortUnique(o.Spec.OpendistroSecurityRoles))
	case *opensearchv1.OpensearchUserRoleBinding:
		parts = append(parts, sortUnique(o.Spec.Roles), sortUnique(o.Spec.Users), sortUnique(o.Spec.BackendRoles), sortUnique(o.Spec.Hosts),
			sortUnique(o.Spec.AndBackendRoles))
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", parts)))
}
