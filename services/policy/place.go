package policy

import (
	"cmp"
	"strconv"
)

// Source says where a document comes from: a file, or an object that holds it.
type Source struct {
	// File is the path as given, or the name of the object.
	File string
	// Document counts the documents of a file from 1; it is 0 for an object.
	Document int
	// Owner is who provides the document, if that is known.
	Owner string
	// fields are those of an object, as far as they have a position.
	fields []string
}

// Position is a place within a source; [Source.At] tells which one. The zero Position is the document as a whole.
type Position struct {
	// In an object, which has no lines, line is 0 and column counts its fields.
	line, column int32
}

// TextPosition is the position at a line and column of a file, both from 1.
func TextPosition(line, column int32) Position { return Position{line, column} }

// Field returns the position of a field of an object, such as "spec.actions[0]". Positions are ordered as the
// calls were; the first is that of the document as a whole. Who reads objects calls it: see syntax.FromObject.
func (s *Source) Field(path string) Position {
	s.fields = append(s.fields, path)
	return Position{column: int32(len(s.fields) - 1)}
}

// Place is a position as people and programs see it.
type Place struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	// Path is the field of an object.
	Path string `json:"path,omitempty"`
	// order is that of the fields of an object.
	order int
}

// At is the place of a position of the document. A nil source is that of what nobody wrote.
func (s *Source) At(p Position) Place {
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

// String is "file:line:column", or "file: path" in an object.
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
