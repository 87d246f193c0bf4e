#!/usr/bin/env python3
"""Many processes at once, whose reports become one: processes.py N COMMAND…

Starts the command N times. Of what sample_report (sample.c) prints, times are
the medians over the processes; all else is their sum.
"""
import statistics
import subprocess
import sys

MEDIANS = ("p50_us", "p99_us")


def main():
    command = sys.argv[2:]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                 for _ in range(int(sys.argv[1]))]
    reports = [process.communicate()[0].split() for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(f"{command[0]}: a process failed")
    names = reports[0][::2]
    for name, *values in zip(names, *(map(float, report[1::2])
                                      for report in reports)):
        combine = statistics.median if name in MEDIANS else sum
        print(name, f"{combine(values):.0f}", end=" ")
    print("processes", len(processes))


main()
