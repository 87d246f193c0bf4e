# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# Works while it holds a lock, and says when it did: see tests/go/user/holder.
#
#   holder.rb RESOURCE TTL_MS [cancel MS]; the URLs are in REDLOCKD_URL

require "timeout"
require "redlockd"

OUTPUT = Mutex.new

def moment
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def say(what, at, *more)
  OUTPUT.synchronize { $stdout.write("#{[what, at, *more].join(' ')}\n") }
end

def works(what)
  Thread.new do
    loop do
      # before the question: however long the process is stopped in between, a late
      # moment is not reported
      at = moment
      break unless yield

      say(what, at)
      sleep 0.002
    end
  end
end

def ours?(lock)
  lock.check
  true
rescue Redlockd::LockLost
  false
end

$stdout.sync = true
resource, ttl_ms, _, cancel_ms = ARGV
losses = Queue.new
client = Redlockd::Client.new(timeout: 1)
lock = client.lock(resource, ttl: ttl_ms.to_f / 1000, owner: "holder",
                             on_loss: ->(loss) { losses << loss })
begin
  if cancel_ms
    Timeout.timeout(cancel_ms.to_f / 1000) { lock.acquire }
  else
    lock.acquire
  end
rescue Redlockd::Error, Timeout::Error => e
  say("not", moment, e.class, e.message)
  exit
end
say("held", moment, lock.fencing_token)
is_over = false
Thread.new do
  $stdin.read
  is_over = true
end
[works("step") { !is_over && ours?(lock) },
 works("ctx") { !is_over && losses.empty? && lock.owned? }].each(&:join)
begin
  lock.check
  say("lost", moment, false)
rescue Redlockd::LockLost => e
  say("lost", moment, true, e.message)
end
begin
  lock.release
  say("released", moment, "<nil>")
rescue Redlockd::LockLost => e
  say("released", moment, e.message)
end
