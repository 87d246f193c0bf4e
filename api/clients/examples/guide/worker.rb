# SPDX-License-Identifier: MIT
# Ships the orders that are not shipped yet. Start as many workers as you like, on any
# machines; SIGTERM ends a worker when it has finished its order.
require "net/http"
require "redlockd"

TTL_S = Float(ENV.fetch("LOCK_TTL_S", 10))
STATES = %w[new picked packed shipped].freeze
STORE = URI(ENV.fetch("STORE", "http://127.0.0.1:8090"))
FAILURES = [SystemCallError, SocketError, IOError, Timeout::Error, Net::ProtocolError].freeze

def store(request)
  answer = Net::HTTP.start(STORE.host, STORE.port) { |http| http.request(request) }
  answer.value # raises unless the status is 2xx
  answer.body
end

def work(order, lock)
  path = "/orders/#{order}"
  # the list may be stale: another worker may have shipped the order meanwhile
  done = STATES.index(store(Net::HTTP::Get.new(path)))
  STATES.drop(done + 1).each do |state|
    lock.check # raises LockLost
    put = Net::HTTP::Put.new(path, "X-Fencing-Token" => lock.fencing_token.to_s)
    put.body = state
    store(put)
    puts "#{order} #{state}"
  end
end

def try_order(order, client)
  client.lock("order:#{order}", ttl: TTL_S, wait: 0) { |lock| work(order, lock) }
rescue Redlockd::LockHeld
  nil # another worker has the order: try the next one
rescue Redlockd::LockLost, *FAILURES => e
  # the order stays in the list: the next holder of its lock continues
  puts "#{order} given up: #{e.message}"
end

$stdout.sync = true
client = Redlockd::Client.new
is_over = false
trap("TERM") { is_over = true }
until is_over
  begin
    store(Net::HTTP::Get.new("/orders/")).each_line(chomp: true) do |line|
      order, state = line.split
      try_order(order, client) if state != STATES.last && !is_over
    end
  rescue Redlockd::Unavailable, *FAILURES => e
    puts "store or lock service failed: #{e.message}"
  end
  10.times { sleep 0.1 unless is_over }
end
