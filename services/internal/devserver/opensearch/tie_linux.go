package opensearch

import "syscall"

// tie has a child killed when this process ends.
func tie(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
