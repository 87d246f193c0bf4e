# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# Many threads that acquire and release locks with one client; prints what became of
# them, one line for each kind of outcome.
#
#   crowd.rb THREADS RESOURCES TTL_MS SECONDS [calm]; the URLs are in REDLOCKD_URL
#
# Unless it is calm, threads are killed and left by Timeout.timeout all the time.

require "timeout"
require "redlockd"

threads, resources, ttl_ms, seconds = ARGV.first(4).map(&:to_i)
IS_CALM = ARGV[4] == "calm"
COUNTS = Hash.new(0)
HIGHEST = Hash.new(0) # fencing tokens, by resource
GATE = Mutex.new

# What is not released, as no server responds in time, is held until its TTL expires.
LOGGER = Object.new
def LOGGER.info(_); end

def LOGGER.warn(text)
  GATE.synchronize { COUNTS["unreleased"] += 1 } if text.include?("not released")
end

CLIENT = Redlockd::Client.new(timeout: 2, logger: LOGGER)
Thread.report_on_exception = false

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Work under the lock, which no earlier holder does any more.
def step(resource, lock)
  GATE.synchronize do
    next COUNTS["lost"] += 1 unless lock.owned?

    COUNTS["overtaken"] += 1 if lock.fencing_token < HIGHEST[resource]
    HIGHEST[resource] = [HIGHEST[resource], lock.fencing_token].max
  end
end

def cycle(resource, ttl_s)
  most_s = IS_CALM || rand > 0.1 ? 60 : rand * 0.05
  Timeout.timeout(most_s) do
    CLIENT.lock(resource, ttl: ttl_s, wait: 30) do |lock|
      2.times do
        step(resource, lock)
        sleep 0.001
      end
    end
  end
  "done"
rescue Redlockd::Error, Timeout::Error => e
  e.class.name.split("::").last
end

END_AT = now + seconds
crowd = Array.new(threads)
work = lambda do |i|
  Thread.new do
    while now < END_AT
      outcome = cycle("crowd:#{IS_CALM ? i : rand(resources)}", ttl_ms / 1000.0)
      GATE.synchronize { COUNTS[outcome] += 1 }
    end
  end
end
threads.times { |i| crowd[i] = work.call(i) }
left = []
until IS_CALM || now > END_AT
  i = rand(threads)
  left << crowd[i].kill
  crowd[i] = work.call(i)
  sleep 0.02
end
(crowd + left).each { |thread| COUNTS["stuck"] += 1 unless thread.join(90) }
COUNTS["killed"] = left.size
COUNTS["held"] = CLIENT.locks("crowd:").count
COUNTS.each { |name, count| puts "#{name} #{count}" }
