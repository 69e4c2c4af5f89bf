package rooms

// listTags uses a higher file. No file that is lower may use it, but retag is for all.
func listTags() string { return string(pass{}.key) }

func retag() {}
