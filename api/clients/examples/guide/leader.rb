# SPDX-License-Identifier: MIT
# One of several processes leads, and counts the seconds of its term. When it ends or
# loses its lock, another one leads.  leader.rb NAME
require "net/http"
require "redlockd"

TTL_S = Float(ENV.fetch("LOCK_TTL_S", 10))
OWNER = ARGV.fetch(0, "127.0.0.1:9000")
STORE = URI(ENV.fetch("STORE", "http://127.0.0.1:8090"))
FAILURES = [SystemCallError, SocketError, IOError, Timeout::Error, Net::ProtocolError].freeze

def lead(lock)
  puts "leads, with fencing token #{lock.fencing_token}"
  1.step do |second|
    lock.check # raises LockLost
    put = Net::HTTP::Put.new("/leader/#{second % 10}", "X-Fencing-Token" => lock.fencing_token.to_s)
    put.body = OWNER
    answer = Net::HTTP.start(STORE.host, STORE.port) { |http| http.request(put) }
    answer.value # raises unless the status is 2xx
    sleep 1
  end
end

$stdout.sync = true
client = Redlockd::Client.new
begin
  loop do
    # without wait:, it waits without a limit; a loss is raised in lead at once
    client.lock("leader", ttl: TTL_S, owner: OWNER, interrupt: true) { |lock| lead(lock) }
  rescue Redlockd::LockLost => e
    puts "leads no more: #{e.message}"
  rescue *FAILURES => e
    puts "failed: #{e.message}"
    sleep 1
  end
rescue SignalException
  nil # SIGTERM, or Ctrl-C: leaving the block has released the lock
end
