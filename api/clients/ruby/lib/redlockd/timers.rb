# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # Of a class: one object for each process, as a forked child has no threads of its
  # parent.
  module PerProcess
    LOCK = Mutex.new
    private_constant :LOCK

    def here
      LOCK.synchronize do
        @here = new unless @process == Process.pid
        @process = Process.pid
        @here
      end
    end
  end

  # A thread of this package. A thread inherits the mask of interrupts; with that of an
  # acquire, it could not be killed, and the end of the program would wait for it.
  class Background < Thread
    def initialize(&block)
      super { Thread.handle_interrupt(Object => :immediate, &block) }
    end
  end

  # One thread of this process that calls blocks, each at its moment of Clock. The
  # blocks must not wait for anything.
  class Timers
    # A block that may be cancelled.
    Timer = Struct.new(:at_ms, :block)

    class << self
      include PerProcess

      # Calls the block then. Returns the Timer.
      def at(moment_ms, &block)
        here.add(moment_ms, block)
      end
    end

    def initialize
      @mutex = Mutex.new
      @moved = ConditionVariable.new
      @timers = [] # the next one is last
      @wakes_at = Float::INFINITY
    end

    def add(moment_ms, block)
      timer = Timer.new(moment_ms, block)
      @mutex.synchronize do
        begin_thread unless @thread&.alive? # a program may kill all threads but its own
        place = @timers.bsearch_index { |other| other.at_ms <= moment_ms } || @timers.size
        @timers.insert(place, timer)
        @moved.signal if moment_ms < @wakes_at
      end
      timer
    end

    # It is not called from now on, but may be under way.
    def self.cancel(timer)
      timer.block = nil
    end

    private

    def begin_thread
      @thread = Background.new { run }
    rescue ThreadError
      raise unless Thread.current.status == "aborting" # at the end of the program
    end

    def run
      Thread.current.name = "redlockd timers"
      loop do
        wait_for_next&.call
      rescue StandardError => e # as no thread can be made: the others go on
        warn("redlockd: #{e.full_message}")
      end
    end

    def wait_for_next
      @mutex.synchronize do
        loop do
          @timers.pop while @timers.last && @timers.last.block.nil?
          @wakes_at = @timers.last ? @timers.last.at_ms : Float::INFINITY
          left_s = (@wakes_at - Clock.now_ms) / 1000
          return @timers.pop.block if left_s <= 0

          @moved.wait(@mutex, left_s.infinite? ? nil : [left_s, Clock::LONGEST_SLEEP_S].min)
        end
      end
    end
  end

  # Threads of this process for what waits: renewals, probes, and what was given up.
  class Workers
    FEW, MOST = 4, 256
    PATIENCE_MS = 50 # what no thread has taken after this time gets one more
    IDLE_S = 10 # then such a thread ends
    LAST_S = 2 # at the end of the program, for what must not be lost

    class << self
      include PerProcess

      # Calls the block in a thread, soon.
      def call(&block)
        here.add(block)
      end

      # The same in a thread of its own, for which the end of the program waits, two
      # seconds at most. nil: no thread can be made any more, as the program ends.
      def call_before_end(&block)
        thread = Background.new(&block)
        thread.report_on_exception = false
        LAST.synchronize do
          at_exit { finish } if @last.nil?
          @last = (@last || []).select(&:alive?) << thread
        end
        thread
      rescue ThreadError
        nil
      end

      private

      def finish
        until_ms = Clock.now_ms + LAST_S * 1000
        LAST.synchronize { @last.dup }.each do |thread|
          thread.join([0, (until_ms - Clock.now_ms) / 1000].max)
        rescue StandardError
          nil
        end
      end
    end

    LAST = Mutex.new
    private_constant :LAST

    # few: more threads than that are not made at once.
    def initialize(few = FEW)
      @few = few
      @mutex = Mutex.new
      @asked = ConditionVariable.new
      @blocks = []
      @idle = @count = 0
    end

    def add(block)
      has_thread = @mutex.synchronize do
        @blocks << block
        @asked.signal
        !short? || spawn(@few)
      end
      help_later unless has_thread
    end

    private

    # With the mutex, as spawn.
    def short?
      @blocks.size > @idle
    end

    def help_later
      Timers.at(Clock.now_ms + PATIENCE_MS) do
        is_short = @mutex.synchronize do
          spawn(MOST) if short?
          short?
        end
        help_later if is_short
      end
    end

    # Whether there is a thread more. The system may have none left.
    def spawn(most)
      return false if @count >= most

      Background.new { run }
      @count += 1
      true
    rescue ThreadError
      false
    end

    def run
      Thread.current.name = "redlockd worker"
      while (block = take)
        begin
          block.call
        rescue StandardError => e
          warn("redlockd: #{e.full_message}")
        end
      end
    ensure # also if it is killed
      @mutex.synchronize { @count -= 1 }
    end

    # nil: there was none for a while.
    def take
      @mutex.synchronize do
        wait if @blocks.empty?
        @blocks.shift
      end
    end

    def wait
      @idle += 1
      @asked.wait(@mutex, IDLE_S)
    ensure
      @idle -= 1
    end
  end

  # Those that send batches. Others wait for them, so there is one for each.
  class Senders < Workers
    def initialize
      super(MOST)
    end
  end
end
