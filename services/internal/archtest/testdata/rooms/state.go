package rooms

type state struct {
	onChange func()
	made     func() // set in a literal
}

func (state) write(string) {}
