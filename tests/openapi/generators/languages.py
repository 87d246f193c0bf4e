# SPDX-License-Identifier: MIT
"""The generators: how each is called, how its client is compiled, and how the
client does the job. In commands, {client} is what was generated, {out} the
folder of the row, {jobs} and {here} where the programs are, {jar} the
openapi-generator, {python} the one with the tools. A job gets the URL of the
server, its default TTL and a name behind it."""
from dataclasses import dataclass, field

# has javax.annotation.Generated
GENERATED = "/usr/share/java/geronimo-annotation-1.3-spec.jar"
JAVA = "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -jar {jar} generate " \
       "-i {spec} -o {client}"


@dataclass(frozen=True)
class Language:
    name: str
    generator: str
    version: str               # the name of the package in requirements.txt
    options: str = ""          # as the docs show them
    generate: str = ""         # if it is not openapi-generator
    compile: tuple[str, ...] = ()
    job: str = ""
    env: dict[str, str] = field(default_factory=dict)
    cargo: bool = False        # one of these at a time
    more: str = ""             # options for this test alone

    def generation(self):
        return self.generate or " ".join(
            [JAVA, "-g", self.generator, self.options, self.more])


def openapi_generator(name, generator, options="", **more):
    return Language(name, generator, "openapi-generator-cli", options, **more)


LANGUAGES = [
    openapi_generator(
        "java", "java", "--library native -p openApiNullable=false",
        more="--invoker-package client --api-package client.api "
             "--model-package client.model",
        # Debian has no jackson-datatype-jsr310; the generator has one in it
        compile=("javac -nowarn -proc:none -encoding UTF-8 "
                 f"-cp {{jar}}:{GENERATED} -d {{out}}/classes "
                 "$(find {client}/src/main -name '*.java') {jobs}/Job.java",),
        job="java -XX:TieredStopAtLevel=1 -Dfile.encoding=UTF-8 "
            "-cp {out}/classes:{jar} Job"),
    openapi_generator(
        "typescript", "typescript-fetch",
        # "in" narrows {} since TypeScript 4.9 only
        compile=("cp {jobs}/job.ts {client}/job.ts",
                 "tsc --target es2020 --module commonjs --lib es2020,dom "
                 "--strict --noImplicitAny false --outDir {out}/classes "
                 "--types null {client}/job.ts"),
        job="node {out}/classes/job.js"),
    openapi_generator(
        "go", "go",
        more="--git-host generated --git-user-id redlockd --git-repo-id client",
        compile=("mkdir -p {client}/job", "cp {jobs}/job.go {client}/job/main.go",
                 "cd {client} && GOFLAGS=-mod=mod GOPROXY=off go build "
                 "-o {out}/job ./job"),
        job="{out}/job"),
    openapi_generator(
        "php", "php",
        compile=("find {client}/lib -name '*.php' -print0 | "
                 "xargs -0 -n 1 -P 2 php -l",),
        job="php {jobs}/job.php", env={"CLIENT": "{client}"}),
    openapi_generator(
        "ruby", "ruby", "--library typhoeus",
        compile=("find {client}/lib -name '*.rb' -print0 | "
                 "xargs -0 -n 1 -P 2 ruby -c",),
        job="ruby -Eutf-8:utf-8 -I {client}/lib {jobs}/job.rb"),
    openapi_generator(
        "python", "python",
        compile=("{python} -m compileall -q {client}/openapi_client",),
        job="{python} {jobs}/job.py", env={"PYTHONPATH": "{client}"}),
    Language(
        "python-client", "openapi-python-client", "openapi-python-client",
        "--fail-on-warning",
        generate="PATH={tools}:$PATH {tools}/openapi-python-client generate "
                 "--path {spec} --meta none --output-path {out}/client "
                 "--config tests/openapi/client.yaml --fail-on-warning",
        compile=("{python} -m compileall -q {client}",),
        job="{python} {jobs}/job_client.py", env={"PYTHONPATH": "{out}"}),
    Language(
        "python-models", "datamodel-code-generator", "datamodel-code-generator",
        "--output-model-type pydantic_v2.BaseModel",
        generate="mkdir -p {client} && {tools}/datamodel-codegen --input {spec} "
                 "--input-file-type openapi --output {client}/models.py "
                 "--formatters builtin "
                 "--output-model-type pydantic_v2.BaseModel",
        compile=("{python} -W error {client}/models.py",)),
    openapi_generator(
        "rust", "rust", "-p supportAsync=false",
        compile=("mkdir -p {out}/job && cp -r {here}/rust/. {out}/job",
                 "nice cargo build -q --locked --manifest-path "
                 "{out}/job/Cargo.toml --target-dir {out}/target"),
        job="{out}/target/debug/job", cargo=True),
    openapi_generator(
        "c", "c", "--name-mappings free=free_slots",
        compile=("mkdir -p {out}/classes && cd {client} && for file in "
                 "{{api,external,model,src}}/*.c; do "
                 "gcc -w -c -o {out}/classes/$(basename $file).o $file; done",)),
    # Debian 12 has no compiler for these, or too old a one (Mono has C# 7), or not
    # their libraries (OkHttp 4 and Moshi for Kotlin, Tesla for Elixir)
    openapi_generator("kotlin", "kotlin"),
    openapi_generator("csharp", "csharp"),
    openapi_generator("dart", "dart"),
    openapi_generator("swift", "swift6"),
    openapi_generator("elixir", "elixir"),
]
SHORT = {"java", "typescript", "go", "php", "ruby", "python"}
