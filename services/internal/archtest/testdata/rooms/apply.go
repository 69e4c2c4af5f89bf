package rooms

func apply(p pass, s state) { s.write(string(p.key)) }

func applyTags() string { retag(); return listTags() }
