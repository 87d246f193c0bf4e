# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # What is asked of redlockd, and when, without I/O: the rules of
  # docs/client-authors.md.
  #
  # Each talk yields what to do next, a Send or a Pause, and wants the Answer to a
  # Send from the block. It returns when it is done, or raises.
  class Talk
    BACKOFF_FIRST_MS = 50.0
    BACKOFF_LAST_MS = 2000.0
    # a response to a watch that reports nothing new should take its time
    POLL_MS = 1000.0
    URGENT_MS = 1000.0 # an extend with less time left waits for no other request

    def initialize(replicas, timeout_ms, logger = nil)
      @replicas = replicas
      @timeout_ms = timeout_ms
      @logger = logger
    end

    # ---- one's own lock --------------------------------------------------------

    # Asks until the lock is held or the time is up. Returns the Grant.
    def acquire(wanted, attempt)
      deadline = wanted.wait_ms ? Clock.now_ms + wanted.wait_ms : Float::INFINITY
      failures = denials = 0
      loop do
        answer = yield attempt.ask(@timeout_ms, deadline - Clock.now_ms)
        grant = Grant.read(answer)
        return grant if grant && grant.work_until_ms > Clock.now_ms

        attempt.may_be_granted ||= !answer.grants_nothing?
        attempt.is_open = false
        left_ms = deadline - Clock.now_ms
        denials = answer.denial? ? denials + 1 : 0
        if answer.held?
          raise attempt.ended(held(wanted, answer)) if left_ms <= 0
          next if attempt.waits_now?

          unless answer.body["waited_ms"].to_i.positive? # it did not wait
            delay_ms = answer.retry_after_ms.positive? ? answer.retry_after_ms : backoff_ms(0, nil)
            yield Pause.new([delay_ms, left_ms].min)
          end
        elsif answer.denial?
          @replicas.avoid(answer.url)
          raise attempt.ended(denial(wanted.name, answer)) if denials >= @replicas.size
        elsif answer.final?
          raise attempt.ended(refusal(wanted.name, answer))
        else
          failures += 1
          # each replica once, and one of them again
          if left_ms <= 0 && failures > @replicas.size
            raise attempt.ended(unavailable("#{wanted.name}: no server grants it", answer))
          end

          @replicas.avoid(answer.url)
          report = "#{wanted.name}: not acquired yet, trying again (#{why(answer)})"
          failures == 1 ? @logger&.warn(report) : @logger&.info(report)
          yield Pause.new([pause_ms(failures, answer), [left_ms, 0].max].min)
        end
      end
    end

    # Of an acquire that was given up: releases what it may have been granted. grant:
    # what it is known to have been granted.
    def give_back(wanted, attempt, grant = nil, &step)
      was_lost = false
      failures = 0
      while failures <= @replicas.size
        unless grant
          answer = yield attempt.ask_again(@timeout_ms)
          grant = Grant.read(answer)
        end
        if grant
          begin
            return release(Hold.new(wanted, grant), &step)
          rescue LockLost
            # the request that was given up may have come later than this one, and
            # have taken its place
            return if was_lost
          end
          was_lost = true
          grant = nil
          next
        end
        return if answer.final? && !answer.denial? # others hold it: nothing was granted

        @replicas.avoid(answer.url)
        failures += 1
        yield Pause.new(backoff_ms(failures, nil)) if failures <= @replicas.size
      end
      @logger&.warn("#{wanted.name}: cancelled, and not released: it may be held until its TTL ends")
    end

    # Returns whether the lock was extended; false: it cannot be, and expires. Raises
    # LockLost if it is lost. ttl_ms: not a renewal, but asked for: servers may
    # refuse that, which raises. Renewals then have this TTL, too.
    def extend(hold, ttl_ms = nil)
      failures = refusals = 0
      loop do
        left_ms = hold.remaining_ms
        raise hold.find_loss if left_ms <= 0

        body = { "ttl_ms" => ttl_ms || hold.grant.ttl_ms }
        # asked with either token, a server finds the lock in either mode
        wanted_shared = hold.wants_shared
        body["mode"] = "shared" if wanted_shared
        # Connection and response together take at most half of what is left: so
        # another replica can be asked.
        answer = yield Send.new(http_method: "PUT", path: "/locks/#{hold.grant.id}/extend",
                                headers: { "X-Lock-Token" => hold.grant.token }, body: body,
                                timeout_ms: [@timeout_ms, left_ms / 4].min,
                                scope: hold.scope, is_urgent: left_ms < URGENT_MS)
        grant = Grant.read(answer)
        if grant
          hold.extended(grant)
          return true
        end
        next if wanted_shared != hold.wants_shared # the token may have changed meanwhile
        raise hold.ended("#{hold.name}: the lock ended (#{answer})") if answer.ended?

        if answer.code == Answer::MAX_HOLD
          @logger&.warn("#{hold.name}: no longer extended (#{answer})")
          raise refusal(hold.name, answer) if ttl_ms

          return false
        end
        if ttl_ms && answer.final? && !(answer.repeated? && hold.downgrading?)
          refusals += 1
          raise refusal(hold.name, answer) if refusals == failures + 1 && refusals >= @replicas.size
        end
        failures += 1
        @replicas.avoid(answer.url)
        @logger&.warn("#{hold.name}: not extended yet (#{why(answer)})")
        yield Pause.new([pause_ms(failures, answer), hold.remaining_ms / 4].min)
      end
    end

    # Makes an exclusive lock a shared one. If this is interrupted, the next renewal
    # does it.
    def downgrade(hold, &step)
      return if hold.grant.is_shared

      hold.wants_shared = true
      begin
        self.extend(hold, hold.grant.ttl_ms, &step)
      rescue RequestRefused => e
        hold.wants_shared = false unless e.code == Answer::MAX_HOLD # no server has begun it
        raise
      end
      nil
    end

    # Raises LockLost if the lock had ended. If no server answers, that is only
    # logged: the lock expires, and other clients wait for that long. may_be_done: by
    # a request that was interrupted.
    def release(hold, may_be_done: false)
      hold.is_released = true
      failures = 0
      loop do
        failures += 1
        answer = yield Send.new(http_method: "DELETE", path: "/locks/#{hold.grant.id}",
                                headers: { "X-Lock-Token" => hold.grant.token },
                                timeout_ms: @timeout_ms, scope: hold.scope)
        return if answer.status == 200

        if answer.ended?
          return if may_be_done || answer.repeated? # that may have been our own release

          hold.is_done = true
          raise hold.ended("#{hold.name}: the lock had ended (#{answer})")
        end
        may_be_done ||= answer.repeated? ||
                        !(answer.denial? || answer.limit? || answer.code == Answer::UNSENT)
        @replicas.avoid(answer.url)
        if hold.validity_ms <= 0 || failures > @replicas.size
          seconds = format("%.1f", hold.validity_ms / 1000)
          @logger&.warn("#{hold.name}: not released; it expires in #{seconds} s (#{answer})")
          return
        end
        yield Pause.new([pause_ms(failures, answer.limit? ? answer : nil), hold.validity_ms].min)
      end
    end

    # ---- any lock --------------------------------------------------------------

    # Asks each replica once, and one of them again, until one returns something else
    # than a failure of its own: an object with this member, or a problem.
    def ask(http_method, path, member)
      what = "#{http_method} #{path}"
      failures = denials = 0
      loop do
        answer = yield Send.new(http_method: http_method, path: path, timeout_ms: @timeout_ms)
        denials = answer.denial? ? denials + 1 : 0
        raise denial(what, answer) if denials >= @replicas.size
        return answer if denials.zero? && (answer.final? || answer.has?(member))

        failures += 1
        @replicas.avoid(answer.url)
        raise unavailable(what, answer) if failures > @replicas.size

        yield Pause.new(backoff_ms(0, nil)) if denials.zero?
      end
    end

    # The body of a good response.
    def get(what, path, member, &step)
      answer = ask("GET", path, member, &step)
      raise refusal(what, answer) unless answer.status == 200

      answer.body
    end

    # The lock as GET /locks/<id> describes it; nil: nobody holds it.
    def holder(resource, &step)
      body = get(resource, "/locks/#{Talk.id(resource)}", "held", &step)
      body["held"] ? body : nil
    end

    # Waits until the lock has another version than this; nil: none is known. Goes on
    # while servers fail. Returns the lock as GET /locks/<id> describes it, held or
    # not.
    def next_holder(resource, version)
      path = "/locks/#{Talk.id(resource)}"
      waits = !version.nil?
      failures = denials = 0
      loop do
        query = waits ? "?after=#{version}&wait_ms=#{Attempt::LONGEST_WAIT_MS}" : ""
        answer = yield Send.new(http_method: "GET", path: path + query, timeout_ms: @timeout_ms,
                                wait_ms: waits ? Attempt::LONGEST_WAIT_MS : 0)
        denials = answer.denial? ? denials + 1 : 0
        if denials.positive?
          @replicas.avoid(answer.url)
          raise denial(resource, answer) if denials >= @replicas.size
        elsif answer.has?("version")
          failures = 0
          waits = !version.nil?
          return answer.body if answer.body["version"] != version

          yield Pause.new([0, answer.sent_ms + POLL_MS - Clock.now_ms].max)
        elsif answer.final?
          raise refusal(resource, answer)
        else
          failures += 1
          @replicas.avoid(answer.url)
          waits = false # a server that does not wait, as it stops, may still answer
          yield Pause.new(pause_ms(failures, answer))
        end
      end
    end

    # Returns whether there was something to release. fencing_token: :all: the locks
    # of all readers.
    def force(id, fencing_token, &step)
      path = "/locks/#{id.gsub(/[^\w.~:-]/) { |c| c.bytes.map { |b| format('%%%02X', b) }.join }}"
      answer = ask("DELETE", "#{path}?force=#{fencing_token}", "released", &step)
      return false if answer.ended?
      raise refusal(id, answer) unless answer.status == 200

      true
    end

    # Whether a replica that failed is back.
    def probe(url)
      answer = yield Send.new(http_method: "GET", path: "/readyz", timeout_ms: 1000, url: url)
      @replicas.probed(url, answer.status.between?(200, 499) && !answer.limit?)
    end

    # As the servers make it: any proxy passes it on unchanged.
    def self.id(resource)
      return resource if resource.match?(/\A[A-Za-z0-9._:-]+\z/) && resource != "." && resource != ".."

      "~#{[resource].pack('m0').tr('+/', '-_').delete('=')}"
    end

    private

    # ---- pauses and errors -----------------------------------------------------

    # Random, so that clients that failed together do not try again together.
    def backoff_ms(failures, answer)
      longest_ms = [BACKOFF_LAST_MS, BACKOFF_FIRST_MS * 2**[failures, 10].min].min
      [Clock.between_ms(longest_ms / 2, longest_ms), answer ? answer.retry_after_ms : 0].max
    end

    # Another replica, which is asked next, need not be busy: what this one asks for
    # counts only once each has failed.
    def pause_ms(failures, answer)
      backoff_ms(failures, (failures % @replicas.size).zero? ? answer : nil)
    end

    def why(answer)
      "#{Replicas.shown(answer.url)}: #{answer}"
    end

    # A refusal that is not from redlockd says where it is from.
    def refused(what, answer)
      from = answer.from_elsewhere? ? " (from #{Replicas.shown(answer.url)})" : ""
      "#{what}: #{answer}#{from}"
    end

    def denial(what, answer)
      text = refused(what, answer)
      case answer.status
      when 401 then Unauthorized.new(text, 401, answer.code)
      when 403 then Forbidden.new(text, 403, answer.code)
      else Untrusted.new(text)
      end
    end

    def refusal(what, answer)
      return denial(what, answer) if answer.denial?

      RequestRefused.new(refused(what, answer), answer.status, answer.code)
    end

    def unavailable(what, answer)
      text = "#{what} (#{why(answer)})"
      answer.limit? ? RateLimited.new(text, answer.retry_after_ms / 1000.0) : Unavailable.new(text)
    end

    def held(wanted, answer)
      if wanted.limit
        return LockHeld.new("#{wanted.name}: not enough of its #{wanted.limit} permits are free")
      end

      of = answer.body["held_by"].is_a?(Hash) ? answer.body["held_by"] : {}
      readers = of["readers"].to_i
      by = of["owner"] || "somebody else"
      by = readers == 1 ? "a reader" : "#{readers} readers" if readers.positive?
      LockHeld.new("#{wanted.name}: the lock is held by #{by}", of)
    end
  end
end
