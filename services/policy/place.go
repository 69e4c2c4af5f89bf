package policy

import (
	"cmp"
	"strconv"
)

// Source says where a document comes from.
type Source struct {
	// File is the path as given, or the name of the object that holds the document.
	File string
	// Document counts the documents of a file from 1; it is 0 for an object.
	Document int
	// Owner is who provides the document, if that is known.
	Owner string
	// Paths are the fields of an object, which has no lines: a position's column is an index into them.
	Paths []string
}

// Position is a place in a document: line and column from 1. In an object Line is 0
// and Column counts its fields. The zero Position is the document as a whole.
type Position struct {
	Line, Column int32
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
	place := Place{File: s.File, Document: s.Document, Line: int(p.Line), Column: int(p.Column)}
	if p.Line == 0 {
		place.Column, place.order = 0, int(p.Column)
		if place.order < len(s.Paths) {
			place.Path = s.Paths[place.order]
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
