package opensearch

import (
	"os"
	"path/filepath"
)

const plugin = "opensearch-security"

// classArchiveFile is the class data archive (CDS) of an installation, made for the JVM of this machine. It reduces the
// start to a third of the time.
const classArchiveFile = "classes.jsa"

// javaArguments returns the arguments of java for a server of the installation in home. They favor a quick start and
// little memory over throughput.
func javaArguments(home, dir string, classes classArchive) []string {
	args := []string{"-Xms256m", "-Xmx256m", "-Xss1m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	args = append(args, classes.archiveArguments(home)...)
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

// classArchive is the file for a new class data archive, which the JVM writes when the server ends. If it is empty,
// the server uses the archive of the installation.
type classArchive string

func (c classArchive) archiveArguments(home string) []string {
	if c != "" {
		return []string{"-XX:ArchiveClassesAtExit=" + string(c)}
	}
	path := filepath.Join(home, classArchiveFile)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + path}
}
