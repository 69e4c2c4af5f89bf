package policy

import (
	"cmp"
	"strconv"
)

// DocumentSource is the origin of a document: a file, or an object.
type DocumentSource struct {
	// File is the path as given, or the name of the object.
	File string
	// Document is the number of the document in its file, from 1; it is 0 for an object.
	Document int
	// Owner is the provider of the document; empty if it is unknown.
	Owner string
	// fields holds the fields of an object that have positions.
	fields []string
}

// Position is a place within a source; [DocumentSource.PlaceAt] returns it. The zero Position means the document as a whole.
type Position struct {
	// An object has no lines: line is 0, and column is the index of the field.
	line, column int32
}

// TextPosition returns the position of a line and column of a file, both from 1.
func TextPosition(line, column int32) Position { return Position{line, column} }

// AddFieldPosition returns the position of a field of an object, such as "spec.actions[0]". Positions have the order of the calls,
// and the first one stands for the document as a whole. Readers of objects call it; see syntax.FromObject.
func (s *DocumentSource) AddFieldPosition(path string) Position {
	s.fields = append(s.fields, path)
	return Position{column: int32(len(s.fields) - 1)}
}

// Place is a position in a form for people and programs.
type Place struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	// Path is the path of a field of an object.
	Path string `json:"path,omitempty"`
	// order is the index of a field of an object.
	order int
}

// PlaceAt returns the place of a position in the document. A nil source, for undeclared types, returns the zero Place.
func (s *DocumentSource) PlaceAt(p Position) Place {
	if s == nil {
		return Place{}
	}
	place := Place{File: s.File, Document: s.Document, Line: int(p.line), Column: int(p.column)}
	if p.line == 0 {
		place.Column, place.order = 0, int(p.column)
		if place.order < len(s.fields) {
			place.Path = s.fields[place.order]
		}
	}
	return place
}

// String returns "file:line:column", or "file: path" for an object.
func (p Place) String() string {
	switch {
	case p.Line > 0:
		return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
	case p.Path != "":
		return p.File + ": " + p.Path
	default:
		return p.File
	}
}

func (p Place) compare(o Place) int {
	return cmp.Or(
		cmp.Compare(p.File, o.File), cmp.Compare(p.Document, o.Document),
		cmp.Compare(p.Line, o.Line), cmp.Compare(p.Column, o.Column), cmp.Compare(p.order, o.order),
	)
}
