# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "securerandom"

module Redlockd
  # What to lock, and how. ttl_ms: nil: the server's default. wait_ms: nil: without
  # a limit. limit: how many permits the resource has; nil: it is a lock.
  Wanted = Struct.new(:resources, :ttl_ms, :wait_ms, :owner, :limit, :permits, :shared,
                      keyword_init: true) do
    def initialize(permits: 1, shared: false, **rest)
      super
      raise ArgumentError, "name at least one resource" if resources.empty?
      raise ArgumentError, "a limit is of one resource" if limit && resources.size > 1
      raise ArgumentError, "permits need a limit" if !limit && permits != 1
      raise ArgumentError, "a permit has one holder: it cannot be shared" if limit && shared
    end

    def name
      resources.join(", ")
    end

    # Of an acquire.
    def scope
      Scope.new(resources, if limit then :permits elsif shared then :readers end)
    end

    # Of the request that asks for it.
    def body
      of = resources.size > 1 ? { "resources" => resources } : { "resource" => resources.first }
      of["ttl_ms"] = ttl_ms if ttl_ms
      of["owner"] = owner if owner
      of.update("limit" => limit, "permits" => permits) if limit
      of["mode"] = "shared" if shared
      of
    end
  end

  # One acquire. All its requests have one key: if a response with a grant was lost,
  # the next request gets the same lock.
  class Attempt
    # proxies may cut requests after 60 s, some after 15 s
    LONGEST_WAIT_MS = 10_000

    attr_accessor :may_be_granted, # by a request whose response does not say
                  :is_open # a request is under way, or its grant is not yet used
    attr_reader :error # with which the talk itself ended, and no interrupt

    def initialize(wanted)
      @wanted = wanted
      @must_wait = false # a try has found the lock held
      new_key
    end

    def ended(error)
      @error = error
    end

    def ask(timeout_ms, left_ms)
      wait_ms = left_ms.clamp(0, LONGEST_WAIT_MS).floor
      body = @wanted.body
      body["wait_ms"] = wait_ms if wait_ms.positive?
      @is_open = true
      @asked = request(body, timeout_ms, wait_ms)
      @asked.must_wait = @must_wait && wait_ms.positive?
      @asked
    end

    # Whether the last request was a try that has found the lock held. From now on, each
    # request waits. The first has another key: a server undoes it if its client leaves,
    # but not a repeat.
    def waits_now?
      return false unless @asked.is_try

      new_key unless may_be_granted
      @must_wait = true
    end

    # Of one that was given up. Returns the Grant that its last request got, after the
    # response if that is in a batch; nil: it got none.
    def settle
      self.may_be_granted = true if is_open && @asked&.is_direct
      answer = @asked&.operation&.outcome if is_open
      return unless answer

      self.may_be_granted ||= !answer.grants_nothing?
      Grant.read(answer)
    end

    # The same again, to find out whether it was granted.
    def ask_again(timeout_ms)
      request(@wanted.body.merge("ttl_ms" => 100), timeout_ms, 0)
    end

    private

    def new_key
      @key = SecureRandom.hex(16) # as secret as a token
    end

    def request(body, timeout_ms, wait_ms)
      Send.new(http_method: "POST", path: "/locks", headers: { "Idempotency-Key" => @key },
               body: body, timeout_ms: timeout_ms, wait_ms: wait_ms, scope: @wanted.scope)
    end
  end
end
