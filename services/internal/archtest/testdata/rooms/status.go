package rooms

func report(k key) string { return string(k) }
