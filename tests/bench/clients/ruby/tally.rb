# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# What the programs of this folder share: cycles of acquire and release, counted
# as ../../load.c does. Each is called as
#
#   PROGRAM CLIENTS SECONDS WHERE…

TTL_S = 30
WARM_UP_US = 500_000
CLIENTS = Integer(ARGV[0])
SECONDS = Float(ARGV[1])
WHERE = ARGV.drop(2)

def now_us = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
def cpu_us = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :microsecond)

# Of one client; cycles that end from `from` to `to` count.
def cycles(number, from, to)
  us = []
  count = failures = 0
  while (start = now_us) < to
    count += 1
    begin
      yield "bench:#{Process.pid}:#{number}:#{count}"
    rescue StandardError => e
      warn e.full_message if (failures += 1) == 1
      next
    end
    now = now_us
    us << (now - start) if now >= from && now < to
  end
  [us, count, failures]
end

# Lets a thread for each client do cycles, for which the block gets the name of a
# lock; prints what came of them, as sample_report in ../../../sample.c.
def tally(&block)
  before_us = cpu_us
  from = now_us + WARM_UP_US
  to = from + (SECONDS * 1e6).to_i
  threads = Array.new(CLIENTS) { |number| Thread.new { cycles(number, from, to, &block) } }
  us, counts, failures = threads.map(&:value).transpose
  us = us.flatten.sort
  percentile = ->(percent) { us[us.size * percent / 100] || 0 }
  puts "cycles_per_s #{(us.size / SECONDS).round} cycles #{counts.sum} " \
       "failures #{failures.sum} p50_us #{percentile[50]} p99_us #{percentile[99]} " \
       "client_cpu_us #{cpu_us - before_us}"
end
