# A lock of redlockd with net/http, for Ruby 3 on Linux.
require "json"
require "net/http"
require "securerandom"
class Lock
  BEARER = ENV["REDLOCKD_AUTH_TOKEN"] # our token, if redlockd wants one
  class Lost < StandardError; end # stop work: somebody else may hold the lock
  def initialize(urls, resource, ttl_ms: 30_000, wait_ms: 60_000)
    @urls, @resource, @ttl_ms, @wait_s, @told_s = urls.dup, resource, ttl_ms, wait_ms / 1000.0, 0
  end

  # Yields while the lock is held; a loss raises Lock::Lost in the block, at once.
  def hold
    path, token, fence = acquire
    renewer = Thread.new(Thread.current) { |worker| renew("#{path}/extend", token, worker) }
    yield self, fence
  ensure
    renewer&.kill&.join
    ask("DELETE", path, 2, token: token) if path
  end

  def check = left_s.positive? || raise(Lost) # before each step that cannot be undone
  # A tenth of the TTL is for ending the work:
  def left_s = @until - @ttl_ms / 10_000.0 - now
  def now = Process.clock_gettime(Process::CLOCK_BOOTTIME)

  def acquire
    @key, deadline = SecureRandom.uuid, now + @wait_s # one key for all repeats
    loop do
      wait_s = (deadline - now).clamp(0, 10)
      want = {resource: @resource, ttl_ms: @ttl_ms, wait_ms: (wait_s * 1000).to_i}
      status, answer = ask("POST", "/locks", wait_s + 2, want)
      return "/locks/#{answer[:id]}", *answer.values_at(:token, :fencing_token) if status < 300
      raise "#{status} #{answer}" unless [409, 503].include?(status) && now < deadline
      sleep(rand(0.2..1) + @told_s) if status == 503
    end
  end

  def renew(path, token, worker)
    while left_s.positive?
      sleep([@pause_s, left_s].min.clamp(0..))
      @pause_s = @ttl_ms / 20_000.0 # unless this succeeds
      _, answer = ask("PUT", path, left_s / @urls.size / 2, token: token, ttl_ms: @ttl_ms)
      break if %w[lock_not_found not_owner].include?(answer[:code])
    end
    worker.raise(Lost)
  end

  def ask(method, path, limit_s, body)
    @urls.size.times do |attempt|
      @urls.rotate! if attempt.positive? # the next replica
      sent, url = now, URI(@urls.first + path)
      head = {"Content-Type" => "application/json", "Idempotency-Key" => @key}
      head["Authorization"] = "Bearer #{BEARER}" if BEARER
      opts = {open_timeout: limit_s, read_timeout: limit_s, max_retries: 0}
      reply = Net::HTTP.start(url.host, url.port, use_ssl: url.scheme == "https", **opts) do |http|
        http.send_request(method, url.path, body.to_json, head)
      end
      answer = JSON.parse(reply.body, symbolize_names: true)
      @told_s = answer.fetch(:retry_after_ms, 0) / 1000.0
      if answer in {elapsed_ms:, validity_ms:, renew_after_ms:}
        @until, @pause_s = sent + (elapsed_ms + validity_ms) / 1000.0, renew_after_ms / 1000.0
      end
      return reply.code.to_i, answer if reply.code.to_i < 429
    rescue Lost # of another lock of this thread
      raise
    rescue StandardError # no answer
    end
    [503, {}]
  end
end
if $PROGRAM_NAME == __FILE__ # RESOURCE TTL_MS WAIT_MS WORK_MS
  $stdout.sync = true
  lock = Lock.new(ENV["URLS"].split, ARGV[0], ttl_ms: ARGV[1].to_i, wait_ms: ARGV[2].to_i)
  lock.hold do |_, fence|
    (ARGV[3].to_i / 50).times do
      sleep 0.05
      lock.check
      puts "working #{Time.now.strftime("%s%L")} #{fence}"
    end
  end
end
