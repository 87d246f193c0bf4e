# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # A lock as a response granted it. Moments are those of Clock, in milliseconds.
  Grant = Struct.new(:id, :token, :fencing_token, :ttl_ms, :renew_at_ms, :until_ms, :work_until_ms,
                     :slots, :is_shared, keyword_init: true) do
    # nil: it is no grant, or was cut off, or is not from redlockd.
    def self.read(answer)
      of = answer.body
      return unless [200, 201].include?(answer.status)

      numbers = of.values_at("fencing_token", "ttl_ms", "elapsed_ms", "validity_ms", "renew_after_ms")
      texts = of.values_at("id", "token") # which are sent back as they are
      return unless numbers.all?(Integer)
      return unless texts.all? { |text| text.is_a?(String) && text.match?(/\A[!-~]+\z/) }

      granted = answer.sent_ms + of["elapsed_ms"]
      new(id: of["id"], token: of["token"], fencing_token: of["fencing_token"], ttl_ms: of["ttl_ms"],
          renew_at_ms: granted + of["renew_after_ms"], until_ms: granted + of["validity_ms"],
          # a tenth of the TTL to end the work
          work_until_ms: granted + of["validity_ms"] - of["ttl_ms"] / 10.0,
          slots: Array(of["slots"]).freeze, is_shared: of["mode"] == "shared")
    end

    def inspect # without the token, a secret
      "#<Redlockd::Grant #{id} #{fencing_token}>"
    end
    alias_method :to_s, :inspect

    # This grant after an extend. While a lock becomes a shared one, the response of
    # a renewal may come last, with the token from before. No response takes back
    # what an earlier one promised.
    def after(before)
      is_older = before.is_shared && !is_shared
      dup.tap do |grant|
        grant.token = before.token if is_older
        grant.is_shared ||= is_older
        grant.until_ms = [before.until_ms, until_ms].max
        grant.work_until_ms = [before.work_until_ms, work_until_ms].max
      end.freeze
    end
  end

  # A lock that was granted: until when, and whether it was lost. Work under it ends
  # a tenth of the TTL before its validity does. Threads may share it.
  class Hold
    attr_reader :name, :grant, :slots
    attr_accessor :loss, :is_released,
                  :is_done, # the talk of the release has ended with a loss
                  :wants_shared # a downgrade has begun: from now on, each extend asks for it

    def initialize(wanted, grant)
      @wanted = wanted
      @name = wanted.name
      @grant = grant
      @slots = grant.slots
      @wants_shared = grant.is_shared
      @mutex = Mutex.new
    end

    # Of what has its token.
    def scope
      if @wanted.limit # each slot is a lock
        Scope.new(@slots.map { |slot| "#{@name}\n#{slot}" })
      else
        Scope.new(@wanted.resources, @grant.is_shared ? :readers : nil)
      end
    end

    # A server may have made it a shared one.
    def downgrading?
      @wants_shared && !@grant.is_shared
    end

    def extended(grant)
      @mutex.synchronize { @grant = grant.after(@grant) }
    end

    # For work: less than until the validity ends.
    def remaining_ms
      return 0.0 if @loss || @is_released

      [0.0, @grant.work_until_ms - Clock.now_ms].max
    end

    def validity_ms
      [0.0, @grant.until_ms - Clock.now_ms].max
    end

    # Before the release. nil: it is not lost.
    def find_loss
      @loss ||= late if remaining_ms <= 0
      @loss
    end

    # By what a server said.
    def ended(text)
      @loss ||= LockLost.new(text)
    end

    def late
      LockLost.new("#{@name}: nothing extended the lock in time")
    end
  end
end
