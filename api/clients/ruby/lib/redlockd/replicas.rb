# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # The servers, and which one to ask. Threads may share it.
  class Replicas
    AVOID_FIRST_MS = 1000.0
    AVOID_LAST_MS = 60_000.0

    Mark = Struct.new(:failures, :failed_at, :until_ms, :is_avoided, :is_probed)

    attr_reader :urls
    attr_writer :probe # begins a probe in the background, whose end is reported to probed()

    def initialize(urls)
      @urls = urls
      @marks = {}
      @mutex = Mutex.new
    end

    # Without a user and a password.
    def self.shown(url)
      url.sub(%r{\A([a-z+.-]*://)?.*@}mi, '\1')
    end

    def size
      @urls.size
    end

    # The first that is not avoided; if all are, the one that failed first. Waiting
    # clients are served in order only if they ask the same server.
    def choose
      due = []
      best = @mutex.synchronize do
        now = Clock.now_ms
        free = @urls.reject { |url| avoided?(url, now, due) }
        free.first || @urls.min_by { |url| @marks[url].failed_at }
      end
      due.each { |url| @probe.call(url) }
      best
    end

    # It failed, or a response is overdue. "": no replica was asked.
    def avoid(url)
      return if url.empty?

      @mutex.synchronize do
        mark = @marks[url] ||= Mark.new(0, 0.0, 0.0, false, false)
        now = mark.failed_at = Clock.now_ms
        if !mark.is_avoided || now >= mark.until_ms
          avoid_ms = [AVOID_LAST_MS, AVOID_FIRST_MS * 2**mark.failures].min
          # random, so that clients do not probe together
          mark.until_ms = now + Clock.between_ms(avoid_ms * 0.75, avoid_ms)
          mark.failures = [mark.failures + 1, 10].min
        end
        mark.is_avoided = true
      end
    end

    # It answered a request, in time.
    def works(url)
      @mutex.synchronize { @marks.delete(url) }
    end

    def probed(url, is_back)
      @mutex.synchronize do
        mark = @marks[url] or return
        mark.is_probed = false
        mark.is_avoided = false if is_back # if it fails again, for longer
      end
      avoid(url) unless is_back
    end

    private

    def avoided?(url, now, due)
      mark = @marks[url]
      return false unless mark&.is_avoided
      return true if now < mark.until_ms
      return false if @probe.nil? || @urls.size == 1

      unless mark.is_probed
        mark.is_probed = true
        due << url
      end
      true
    end
  end
end
