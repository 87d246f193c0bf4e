# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # Renewals that are due at the same time: their talks are fibers of one thread, so
  # that what they want goes together. Those that are due before the thread begins
  # belong to it, too.
  class Renewals
    MOST = 100 # of one thread

    class << self
      include PerProcess

      # Begins the renewal of a Keeper.
      def add(keeper)
        here.add(keeper)
      end
    end

    def initialize
      @mutex = Mutex.new
      @due = []
    end

    def add(keeper)
      is_first = @mutex.synchronize { (@due << keeper).size == 1 }
      begin_group if is_first
    end

    private

    def begin_group
      Workers.call do
        keepers, has_more = @mutex.synchronize { [@due.shift(MOST), !@due.empty?] }
        begin_group if has_more
        Group.new(keepers).run
      end
    end

    # The renewals of one thread, until all have ended.
    class Group
      def initialize(keepers)
        @mailbox = Thread::Queue.new
        @left = keepers.dup
        keepers.each { |keeper| @mailbox << [[keeper, talk(keeper)], nil] }
      end

      def run
        until @left.empty?
          events = [@mailbox.pop]
          events << @mailbox.pop until @mailbox.empty?
          operations = events.filter_map { |renewal, what| take(renewal, what) }
          operations.group_by(&:first).each { |caller, all| caller.add(all.map(&:last)) }
        end
      ensure # if the thread is killed
        @left.each(&:renew_later)
      end

      private

      def talk(keeper)
        Fiber.new do
          keeper.renew { |step| Fiber.yield(step) }
          nil
        end
      end

      # Returns the caller and the operation that come next; nil: there is none now.
      def take(renewal, what)
        keeper, fiber = renewal
        return carry(keeper.caller, what) if what.is_a?(Request)

        step = step_of(keeper, fiber, what)
        if step.nil? || keeper.stopped?
          @left.delete(keeper)
        elsif step.is_a?(Pause)
          Timers.at(Clock.now_ms + step.ms) { @mailbox << [renewal, nil] }
        else
          return [keeper.caller, Operation.new(step, @mailbox, renewal)]
        end
        nil
      end

      def step_of(keeper, fiber, what)
        fiber.resume(what)
      rescue StandardError => e
        keeper.renew_later
        warn("redlockd: #{e.full_message}")
      end

      def carry(caller, request)
        @left.size == 1 ? caller.carry(request) : Senders.call { caller.carry(request) }
        nil
      end
    end
    private_constant :Group
  end
end
