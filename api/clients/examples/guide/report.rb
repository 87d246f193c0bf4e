# SPDX-License-Identifier: MIT
# Writes the report of a day, section by section. Each machine has this line in its
# crontab:
#   0 2 * * * ruby /usr/local/bin/report.rb
require "date"
require "net/http"
require "redlockd"

TTL_S = Float(ENV.fetch("LOCK_TTL_S", 60))
STORE = URI(ENV.fetch("STORE", "http://127.0.0.1:8090"))
TODAY = Date.today.iso8601
FAILURES = [SystemCallError, SocketError, IOError, Timeout::Error, Net::ProtocolError].freeze

def store(request)
  Net::HTTP.start(STORE.host, STORE.port) { |http| http.request(request) }
end

def write_report(lock)
  # another machine may have finished before our clock reached two
  return if store(Net::HTTP::Get.new("/report/day")).body == TODAY

  %w[orders stock returns day].each do |section|
    lock.check # raises LockLost
    put = Net::HTTP::Put.new("/report/#{section}", "X-Fencing-Token" => lock.fencing_token.to_s)
    put.body = section == "day" ? TODAY : "of #{TODAY}"
    store(put).value # raises unless the status is 2xx
  end
  puts "report of #{TODAY}: done"
end

begin
  Redlockd::Client.new.lock("report", ttl: TTL_S, wait: 0) { |lock| write_report(lock) }
rescue Redlockd::LockHeld
  nil # another machine writes it
rescue Redlockd::Error, *FAILURES => e
  abort "report of #{TODAY}: not finished: #{e.message}" # cron mails this
end
