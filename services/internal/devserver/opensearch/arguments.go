package opensearch

import (
	"os"
	"path/filepath"
)

const plugin = "opensearch-security"

// archive is the file of an installation with classes as the JVM of this machine wants them, which makes
// the start take a third of the time.
const archive = "classes.jsa"

// arguments are those of java for a server of the installation in home: for a quick start in
// little memory rather than for long work.
func arguments(home, dir string, classes classes) []string {
	args := []string{"-Xms256m", "-Xmx256m", "-Xss1m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	args = append(args, classes.arguments(home)...)
	args = append(args,
		"-XX:-OmitStackTraceInFastThrow", "-Djava.security.manager=allow", "-Djava.awt.headless=true",
		"-Dfile.encoding=UTF-8", "-Djava.locale.providers=SPI,COMPAT", "-Djna.nosys=true",
		"-Dio.netty.noUnsafe=true", "-Dio.netty.noKeySetOptimization=true",
		"-Dio.netty.recycler.maxCapacityPerThread=0", "-Dio.netty.allocator.numDirectArenas=0",
		"-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true",
		"-Djava.util.concurrent.ForkJoinPool.common.threadFactory=org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory",
		"-Djava.io.tmpdir="+filepath.Join(dir, "tmp"), "-Dopensearch.path.home="+home,
		"-Dopensearch.path.conf="+filepath.Join(dir, configuration),
		"-Dopensearch.distribution.type=zip", "-Dopensearch.bundled_jdk=false",
		"-cp", filepath.Join(home, "lib", "*"), "org.opensearch.bootstrap.OpenSearch")
	return args
}

// classes is a file to write the archive of classes to when the server ends; empty means to use the one
// that the installation has.
type classes string

func (c classes) arguments(home string) []string {
	if c != "" {
		return []string{"-XX:ArchiveClassesAtExit=" + string(c)}
	}
	path := filepath.Join(home, archive)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + path}
}
