package event

import (
	"encoding/json"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// noTime replaces an invalid time. It is the zero value of a condition's time.
const noTime = `"1970-01-01T00:00:00Z"`

// DecodeObject decodes an object and replaces invalid times in its status. The API server accepts some invalid times,
// such as "2026-01-01t00:00:00z". A user who may only write the status must not make the object undecodable.
func DecodeObject(object []byte, into any) error { return decodeObject(json.Unmarshal, object, into) }

// DecodeObjectCaseSensitive decodes an object like [DecodeObject], with case-sensitive field names. An object without a
// schema may have a field "Metadata" as well as its metadata.
func DecodeObjectCaseSensitive(object []byte, into any) error {
	return decodeObject(utiljson.Unmarshal, object, into)
}

func decodeObject(unmarshal func([]byte, any) error, object []byte, into any) error {
	err := unmarshal(object, into)
	if err == nil {
		return nil
	}
	mended, ok := replaceInvalidTimes(object)
	if !ok {
		return err
	}
	return unmarshal(mended, into)
}

// replaceInvalidTimes replaces invalid times in the status. ok is false if there are none.
func replaceInvalidTimes(object []byte) (mended []byte, ok bool) {
	var top, status map[string]json.RawMessage
	if json.Unmarshal(object, &top) != nil || json.Unmarshal(top["status"], &status) != nil {
		return nil, false
	}
	for list, field := range map[string]string{"conditions": "lastTransitionTime", "suspensions": "suspendedAt"} {
		if items, odd := replaceInvalidItemTimes(status[list], field); odd {
			status[list], ok = items, true
		}
	}
	if !ok {
		return nil, false
	}
	all, err := json.Marshal(status)
	if err == nil {
		top["status"] = all
		mended, err = json.Marshal(top)
	}
	return mended, err == nil
}

// replaceInvalidItemTimes replaces invalid times in one field of the items of a list. odd reports whether there were
// any.
func replaceInvalidItemTimes(list []byte, field string) (mended []byte, odd bool) {
	var items []map[string]json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return nil, false
	}
	for _, item := range items {
		var is time.Time
		if text, there := item[field]; there && json.Unmarshal(text, &is) != nil {
			item[field], odd = json.RawMessage(noTime), true
		}
	}
	mended, err := json.Marshal(items)
	return mended, odd && err == nil
}
