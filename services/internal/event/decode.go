package event

import (
	"encoding/json"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// noTime is in the place of a time that is none: the one that conditions have from the start.
const noTime = `"1970-01-01T00:00:00Z"`

// Decode reads an object. The API server takes texts for times that are none to whoever reads them, such as
// "2026-01-01t00:00:00z": who may write a status, and nothing else, must not keep from others what an object says.
func Decode(object []byte, into any) error { return decode(json.Unmarshal, object, into) }

// DecodeExactly does so, and takes no field for another whose name has other letters alone in capitals: objects of any kind
// may have "Metadata" beside their metadata, if nobody has said what is in them.
func DecodeExactly(object []byte, into any) error { return decode(utiljson.Unmarshal, object, into) }

func decode(unmarshal func([]byte, any) error, object []byte, into any) error {
	err := unmarshal(object, into)
	if err == nil {
		return nil
	}
	mended, ok := mendTimes(object)
	if !ok {
		return err
	}
	return unmarshal(mended, into)
}

// mendTimes puts times in the place of what is none in a status, if there is such.
func mendTimes(object []byte) (mended []byte, ok bool) {
	var top, status map[string]json.RawMessage
	if json.Unmarshal(object, &top) != nil || json.Unmarshal(top["status"], &status) != nil {
		return nil, false
	}
	for list, field := range map[string]string{"conditions": "lastTransitionTime", "suspensions": "suspendedAt"} {
		if items, odd := mendItems(status[list], field); odd {
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

// mendItems does so with a field of what is in a list.
func mendItems(list []byte, field string) (mended []byte, odd bool) {
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
