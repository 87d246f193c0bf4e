# SPDX-License-Identifier: MIT
"""The Go blocks of the module's README, as they are, over real servers."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile

import check_faults
from check_module import BUILD, ROOT, SOURCE, run
from jobs import Job
from processes import end, spawn
from waiting import wait_until

# what stands around a block that is no whole program
AROUND = """package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

var _ = []any{errors.Is, fmt.Print, log.Print, time.Second}

func ship(context.Context, int64) error { return nil }

func lead(ctx context.Context, number int64) error {
	fmt.Println("leads", number)
	<-ctx.Done()
	return ctx.Err()
}

func example(ctx context.Context, client *redlockd.Client) error {
%s}

func main() {
	client, err := redlockd.New(redlockd.Config{})
	if err == nil {
		err = example(context.Background(), client)
	}
	if err != nil {
		log.Fatal(err)
	}
}
"""


def whole(block):
    if block.startswith("package "):
        return block
    return AROUND % (block if re.search("^\treturn ", block, re.M)
                     else block + "\treturn nil\n")


class Pages(check_faults.Case):
    options = "--max-ttl-ms", "60000"
    PAGE = SOURCE / "README.md"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="page.", dir=BUILD / "user")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.blocks = re.findall(r"^```go\n(.*?)^```$", cls.PAGE.read_text(),
                                re.M | re.S)

    def build(self, name, *blocks):
        """Programs, one for each block."""
        for number, block in enumerate(blocks):
            folder = self.folder / f"{name}{number}"
            folder.mkdir()
            (folder / "main.go").write_text(
                whole(block).replace("http://127.0.0.1:8080", self.urls[0]))
        run(self, "go", "vet", "./...", cwd=self.folder)
        programs = self.folder / f"of-{name}"
        programs.mkdir()
        run(self, "go", "build", "-race", "-o", programs, f"./{name}...",
            cwd=self.folder)
        return [programs / f"{name}{number}" for number in range(len(blocks))]

    def environment(self):
        return {**os.environ, "REDLOCKD_URL": ",".join(self.urls)}

    def test_they_run(self):
        blocks = [one for one in self.blocks if "for ctx.Err()" not in one]
        self.assertGreaterEqual(len(blocks), 6)
        for program, block in zip(self.build("block", *blocks), blocks):
            with self.subTest(block):
                done = subprocess.run(
                    [program], env=self.environment(),
                    text=True, capture_output=True, timeout=60, check=False)
                self.assertEqual(done.stderr, "")
                self.assertEqual(done.returncode, 0)

    def test_one_leads_and_another_one_after_a_loss(self):
        [block] = [one for one in self.blocks if "for ctx.Err()" in one]
        self.assertLessEqual(len(block.splitlines()), 14)
        [program] = self.build("leader", block)
        told, both = [], []

        def read_lines(process):
            for line in process.stdout:
                told.append((process.pid, *line.split()))

        for _ in range(2):
            process = spawn(program, env=self.environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.addCleanup(end, process)
            both.append(process)
            Job(read_lines, process).start()

        def leaders():
            return [line for line in told if line[1] == "leads"]

        wait_until(leaders, "one leads", 60)
        first = leaders()[0]
        self.world.vacate("leader", self.world.nodes)
        wait_until(lambda: len(leaders()) > 1, "one leads again", 60)
        second = leaders()[-1]
        self.assertGreater(int(second[2]), int(first[2]))
        [leader] = [one for one in both if one.pid == second[0]]
        end(leader)
        wait_until(lambda: leaders()[-1][0] not in (leader.pid,),
                   "the other one leads", 60)
        self.assertGreater(int(leaders()[-1][2]), int(second[2]))
