# SPDX-License-Identifier: MIT
# POST /orders/<id>/ship ships an order; two requests never work on the same order at
# once. It needs the gem webrick.  web.rb [PORT]
require "net/http"
require "redlockd"
require "webrick"

TTL_S = Float(ENV.fetch("LOCK_TTL_S", 10))
STATES = %w[new picked packed shipped].freeze
STORE = URI(ENV.fetch("STORE", "http://127.0.0.1:8090"))
LOCKS = Redlockd::Client.new # all threads share its connections

def store(request)
  answer = Net::HTTP.start(STORE.host, STORE.port) { |http| http.request(request) }
  answer.value # raises unless the status is 2xx
  answer.body
end

def ship(order)
  path = "/orders/#{order}"
  LOCKS.lock("order:#{order}", ttl: TTL_S, wait: 2) do |lock|
    # an earlier holder may have done some steps: read the state under the lock
    done = STATES.index(store(Net::HTTP::Get.new(path)))
    STATES.drop(done + 1).each do |state|
      lock.check # raises LockLost
      put = Net::HTTP::Put.new(path, "X-Fencing-Token" => lock.fencing_token.to_s)
      put.body = state
      store(put)
    end
  end
end

def status_and_text(order)
  ship(order)
  [200, "shipped"]
rescue Redlockd::LockHeld
  [409, "another request ships it"]
rescue Redlockd::LockLost # some steps may be done: the next request continues
  [503, "not finished, try again"]
rescue Redlockd::Unavailable # nothing was done
  [503, "no lock service, try again"]
rescue Net::HTTPClientException, Net::HTTPFatalError => e # 409: a later holder has written
  status = e.response.code
  [status == "404" ? 404 : 503, "the store says #{status}"]
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: Integer(ARGV.fetch(0, 8091)))
server.mount_proc("/orders/") do |request, response|
  response.status, text = status_and_text(request.path.split("/")[2])
  response["Retry-After"] = "1" if [409, 503].include?(response.status)
  response.body = "#{text}\n"
  response.keep_alive = false # curl -X POST sends no Content-Length, which WEBrick needs for that
end
server.start
