# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # The clock by which validity is measured, in milliseconds since an arbitrary
  # moment. It never steps back, and runs on while the machine sleeps, as the TTLs
  # on the nodes do; where there is no such clock, it is the monotonic one.
  module Clock
    ID = defined?(Process::CLOCK_BOOTTIME) ? Process::CLOCK_BOOTTIME : Process::CLOCK_MONOTONIC
    # Timers stop while the machine sleeps: whoever waits for a moment looks at the
    # clock again after this time at most.
    LONGEST_SLEEP_S = 1.0

    class << self
      attr_accessor :fake # for tests: it returns the time

      def now_ms
        fake ? fake.call : Process.clock_gettime(ID, :float_millisecond)
      end

      # A random time.
      def between_ms(least, most)
        least + (most - least) * rand
      end
    end
  end
end
