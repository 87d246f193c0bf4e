# A lock of redlockd with net/http, for Ruby 3 on Linux.
require "json"
require "net/http"
require "securerandom"

class Lock
  class Lost < StandardError; end # stop work: somebody else may hold the lock
  class Held < StandardError; end # the wait is over, and somebody else holds it

  def initialize(urls, resource, ttl_ms: 30_000, wait_ms: 60_000)
    @urls = urls.dup
    @resource = resource
    @ttl_ms = ttl_ms
    @wait_s = wait_ms / 1000.0
    @told_s = 0 # by a server that wants to be left alone for so long
  end

  # Yields the lock and its fencing token while it is held; a loss raises
  # Lock::Lost in the block, at once.
  def hold
    path, token, fence = acquire
    renewer = Thread.new(Thread.current) do |worker|
      renew("#{path}/extend", token, worker)
    end
    yield self, fence
  ensure
    renewer&.kill&.join
    ask("DELETE", path, 2, token: token) if path
  end

  # To be called right before each step that cannot be undone.
  def check
    raise Lost unless left_s.positive?
  end

  private

  # It runs on while the machine sleeps.
  def now
    Process.clock_gettime(Process::CLOCK_BOOTTIME)
  end

  # A tenth of the TTL is for ending the work.
  def left_s
    @until - @ttl_ms / 10_000.0 - now
  end

  # The path, the token and the fencing token; raises what says why not.
  def acquire
    @key = SecureRandom.uuid # one for all repeats
    deadline = now + @wait_s
    loop do
      wait_s = (deadline - now).clamp(0, 10)
      want = {resource: @resource, ttl_ms: @ttl_ms, wait_ms: (wait_s * 1000).to_i}
      status, answer = ask("POST", "/locks", wait_s + 2, want)
      if status < 300
        return "/locks/#{answer[:id]}", answer[:token], answer[:fencing_token]
      end
      raise Held, answer[:detail] if status == 409 && now >= deadline
      raise "#{status} #{answer}" unless [409, 503].include?(status) && now < deadline
      sleep(rand(0.2..1) + @told_s) if status == 503
    end
  end

  def renew(path, token, worker)
    while left_s.positive?
      sleep([@renew_at - now, left_s].min.clamp(0..))
      @renew_at = now + @ttl_ms / 20_000.0 # unless this succeeds
      limit_s = left_s / @urls.size
      _, answer = ask("PUT", path, limit_s, token: token, ttl_ms: @ttl_ms)
      break if %w[lock_not_found not_owner].include?(answer[:code])
    end
    worker.raise(Lost)
  end

  # The status and the answer of the first replica that has one; 503: none.
  def ask(method, path, limit_s, body)
    @urls.size.times do |attempt|
      @urls.rotate! if attempt.positive? # the next replica
      sent = now
      reply = send_request(method, URI(@urls.first + path), limit_s, body)
      answer = JSON.parse(reply.body, symbolize_names: true)
      @told_s = answer.fetch(:retry_after_ms, 0) / 1000.0
      if answer in {elapsed_ms:, validity_ms:, renew_after_ms:}
        granted = sent + elapsed_ms / 1000.0
        @until = granted + validity_ms / 1000.0
        @renew_at = granted + renew_after_ms / 1000.0
      end
      return reply.code.to_i, answer if reply.code.to_i < 429
    rescue Lost # of another lock of this thread
      raise
    rescue StandardError # no answer
    end
    [503, {}]
  end

  def send_request(method, url, limit_s, body)
    head = {"Content-Type" => "application/json", "Idempotency-Key" => @key}
    bearer = ENV["REDLOCKD_AUTH_TOKEN"] # our token, if redlockd wants one
    head["Authorization"] = "Bearer #{bearer}" if bearer
    Net::HTTP.start(url.host, url.port, use_ssl: url.scheme == "https",
                    open_timeout: limit_s, read_timeout: limit_s,
                    max_retries: 0) do |http|
      http.send_request(method, url.path, body.to_json, head)
    end
  end
end

if $PROGRAM_NAME == __FILE__ # RESOURCE TTL_MS WAIT_MS WORK_MS
  $stdout.sync = true
  resource, ttl_ms, wait_ms, work_ms = ARGV
  lock = Lock.new(ENV["URLS"].split, resource, ttl_ms: ttl_ms.to_i, wait_ms: wait_ms.to_i)
  lock.hold do |_, fence|
    (work_ms.to_i / 50).times do
      sleep 0.05
      lock.check
      puts "working #{Time.now.strftime("%s%L")} #{fence}"
    end
  end
end
